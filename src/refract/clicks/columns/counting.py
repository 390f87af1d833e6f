"""Counting of clicks in tables, day by day."""

from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from hashlib import blake2b
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from refract.clicks.columns.dimensions import FACT_DIMENSIONS, LINKS
from refract.clicks.columns.requests import BucketCount, CountRequest, CountResult
from refract.clicks.columns.table import ClickTable, Numbers, ValueNumbering
from refract.clicks.rollups.breakdowns import ABSENT_VALUES
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, QUARTER

DAY_SECONDS: Final = GRAIN_SECONDS[DAY]
_QUARTER_SECONDS: Final = GRAIN_SECONDS[QUARTER]
_OUTSIDE: Final = -1
_HASH_BYTES: Final = 8


MAX_CACHED_COUNT_BYTES: Final = 24 * 1024 * 1024
"""Bytes of counted days that are kept: five filters or so over a year of many values."""
_COUNT_BYTES: Final = 500
"""Of a counted day without its values, roughly."""


class DayCount(NamedTuple):
    """The clicks of a whole day that a request counts, without its period."""

    clicks: int
    people: int
    uniques: int
    values: Mapping[str, tuple[Numbers, Numbers]]
    """By dimension: numbers of values or places of links, and the clicks of each."""

    @property
    def byte_count(self) -> int:
        arrays = (array for pair in self.values.values() for array in pair)
        return _COUNT_BYTES + sum(array.nbytes for array in arrays)


class DayCounts:
    """Counted days of files, which never change. Those used last are kept in memory."""

    def __init__(self) -> None:
        self._counts: OrderedDict[Hashable, DayCount] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> DayCount | None:
        count = self._counts.get(key)
        if count is not None:
            self._counts.move_to_end(key)
        return count

    def add(self, key: Hashable, count: DayCount) -> None:
        self._counts[key] = count
        self._bytes += count.byte_count
        while self._bytes > MAX_CACHED_COUNT_BYTES:
            _, oldest = self._counts.popitem(last=False)
            self._bytes -= oldest.byte_count


class ClickCounter:
    """Sums up the clicks of some links that have the values of a request."""

    def __init__(
        self, request: CountRequest, links: NDArray[np.int64], numbering: ValueNumbering
    ) -> None:
        """`links`: the ids of the links of the scope, in ascending order."""
        self._request, self._links, self._numbering = request, links, numbering
        self._kind = request.scope.kind
        self.question: Hashable = (
            self._kind,
            tuple(sorted(request.values.items())),
            tuple(request.dimensions),
            blake2b(links.tobytes(), digest_size=16).digest(),
        )
        """What `count_day` depends on, besides the table."""
        self._buckets = [BucketCount() for _ in pairwise(request.edges)]
        self._uniques = 0
        self._sums = {name: np.zeros(0, np.int64) for name in request.dimensions}
        self._facts = {
            fact: wanted
            for fact, dimensions in FACT_DIMENSIONS.items()
            if (wanted := [name for name in dimensions if name in self._sums])
        }

    def is_whole(self, day: int) -> bool:
        """Return whether all clicks of a UTC day are in one bucket."""
        return isinstance(self._place_day(day), int)

    def count_day(self, table: ClickTable) -> DayCount:
        """Count the clicks of a day, for `add_count`."""
        places, is_wanted = self._match_targets(table)
        mask = self._match_clicks(table, is_wanted)
        if mask is None:
            return DayCount(0, 0, 0, {})
        # Of bots nothing but their number is needed, so only the rows of people are looked up.
        rows = (mask & (table.visitors != 0)).nonzero()[0]
        return DayCount(
            int(np.count_nonzero(mask)),
            rows.size,
            _count_unique(table.visitors[rows]),
            {
                name: (numbers.astype(np.int32), counts.astype(np.int32))
                for name, numbers, counts in self._count_values(table, rows, places)
            },
        )

    def add_count(self, day: int, count: DayCount) -> None:
        """Add the clicks of a whole UTC day."""
        bucket = self._place_day(day)
        assert isinstance(bucket, int)  # noqa: S101 - by `is_whole`
        self._add_bucket(bucket, count.clicks, count.people, count.uniques)
        self._uniques += count.uniques
        for name, (numbers, counts) in count.values.items():
            self._add_counts(name, numbers, counts)

    def add_day(self, day: int, table: ClickTable) -> None:
        """Count the clicks of a UTC day. Each day is added once, with all its clicks."""
        bucket = self._place_day(day)
        if isinstance(bucket, int):
            self.add_count(day, self.count_day(table))
            return
        places, is_wanted = self._match_targets(table)
        mask = self._match_clicks(table, is_wanted)
        if mask is None:
            return
        inside = (bucket != _OUTSIDE)[table.quarters]
        mask &= inside
        rows = (mask & (table.visitors != 0)).nonzero()[0]
        visitors, buckets = table.visitors[rows], bucket[table.quarters[rows]]
        clicks = np.bincount(bucket[table.quarters[mask]])
        for number in clicks.nonzero()[0].tolist():
            people = visitors[buckets == number]
            self._add_bucket(number, int(clicks[number]), people.size, _count_unique(people))
        self._uniques += _count_unique(visitors)
        for name, numbers, counts in self._count_values(table, rows, places):
            self._add_counts(name, numbers, counts)

    def build_result(self, kept_from: int) -> CountResult:
        values: dict[str, Counter[str]] = {}
        for name, sums in self._sums.items():
            found = np.flatnonzero(sums).tolist()
            if name == LINKS:
                values[name] = Counter({str(self._links[at]): int(sums[at]) for at in found})
                continue
            known = list(self._numbering.numbers[name])
            absent = ABSENT_VALUES.get(name)
            values[name] = Counter(
                {value: int(sums[at]) for at in found if (value := known[at] or absent)}
            )
        return CountResult(self._buckets, self._uniques, values, kept_from)

    def _match_targets(self, table: ClickTable) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the place of each target among the links, and whether it is one of them."""
        places = np.searchsorted(self._links, table.target_ids)
        if not self._links.size:
            return places, np.zeros(places.size, bool)
        places[places == self._links.size] = 0
        return places, (self._links[places] == table.target_ids) & (table.kinds == self._kind)

    def _match_clicks(
        self, table: ClickTable, is_wanted: NDArray[np.bool_]
    ) -> NDArray[np.bool_] | None:
        """Return which clicks on wanted targets have the values of the request; None if none."""
        if not is_wanted.any():
            return None
        mask = None if is_wanted.all() else is_wanted[table.targets]
        for fact, dimensions in FACT_DIMENSIONS.items():
            chosen = [name for name in dimensions if name in self._request.values]
            if not chosen:
                continue
            column = table.facts[fact]
            matched = np.ones(len(column.values[chosen[0]]), bool)
            for name in chosen:
                number = self._numbering.numbers[name].get(self._request.values[name], _OUTSIDE)
                matched &= column.values[name] == number
            rows = _match_rows(column.rows, matched)
            if rows is None:
                return None
            mask = rows if mask is None else mask & rows
        return np.ones(table.targets.size, bool) if mask is None else mask

    def _place_day(self, day: int) -> int | Numbers:
        """Return the bucket of a day, or of each of its quarter hours if there are several."""
        edges, start = self._request.edges, day * DAY_SECONDS
        bucket = bisect_right(edges, start) - 1
        if bucket >= 0 and start + DAY_SECONDS <= edges[min(bucket + 1, len(edges) - 1)]:
            return bucket
        starts = range(start, start + DAY_SECONDS, _QUARTER_SECONDS)
        return np.array(
            [bisect_right(edges, at) - 1 if at < self._request.end else _OUTSIDE for at in starts]
        )

    def _add_bucket(self, number: int, clicks: int, people: int, uniques: int) -> None:
        """Add clicks of one day, including those of bots, to a bucket."""
        bucket = self._buckets[number]
        bucket.clicks += people
        bucket.bots += clicks - people
        bucket.uniques += uniques

    def _count_values(
        self, table: ClickTable, rows: NDArray[np.intp], places: NDArray[np.intp]
    ) -> Iterator[tuple[str, Numbers, Numbers]]:
        """Yield each dimension with the numbers that occur in some rows, and their clicks."""
        if LINKS in self._sums:
            found, counts = _count_numbers(table.targets[rows])
            yield LINKS, places[found], counts
        for fact, dimensions in self._facts.items():
            column = table.facts[fact]
            size = len(column.values[dimensions[0]])
            found, counts = _count_numbers(column.rows[rows]) if size > 1 else _count_all(rows)
            for name in dimensions:
                yield name, *_add_up(column.values[name][found], counts)

    def _add_counts(self, name: str, numbers: Numbers, counts: Numbers) -> None:
        """Add the clicks of numbers, each of which occurs once."""
        size = self._links.size if name == LINKS else len(self._numbering.numbers[name])
        if self._sums[name].size < size:
            self._sums[name] = np.pad(self._sums[name], (0, 2 * size - self._sums[name].size))
        self._sums[name][numbers] += counts


def _match_rows(rows: Numbers, matched: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Return which rows have a matched number; None if there is none.

    Numbers are sorted by value in files, so they are mostly one range.
    """
    numbers = matched.nonzero()[0]
    if not numbers.size:
        return None
    first, last = int(numbers[0]), int(numbers[-1])
    if last - first + 1 == numbers.size:
        found: NDArray[np.bool_] = (rows >= first) & (rows <= last)
        return found
    return matched[rows]


def _count_numbers(numbers: Numbers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the numbers that occur, and how often each does."""
    counts = np.bincount(numbers)
    found = counts.nonzero()[0]
    return found, counts[found]


def _add_up(
    numbers: Numbers, counts: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return each number once, with the sum of its counts."""
    sums = np.zeros(int(numbers.max(initial=-1)) + 1, np.intp)
    np.add.at(sums, numbers, counts)
    found = sums.nonzero()[0]
    return found, sums[found]


def _count_all(rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the same for rows that all have the only number."""
    return np.zeros(1, np.intp), np.full(1, rows.size)


def _count_unique(visitors: Numbers) -> int:
    if not visitors.size:
        return 0
    if visitors.itemsize == _HASH_BYTES:
        return int(np.unique(visitors).size)
    seen = np.zeros(int(visitors.max()) + 1, bool)
    seen[visitors] = True
    return int(np.count_nonzero(seen))
