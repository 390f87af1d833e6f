"""Counting of clicks in tables, day by day."""

from bisect import bisect_right
from collections import Counter
from itertools import pairwise
from typing import Final

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


class ClickCounter:
    """Sums up the clicks of some links that have the values of a request."""

    def __init__(
        self, request: CountRequest, links: NDArray[np.int64], numbering: ValueNumbering
    ) -> None:
        """`links`: the ids of the links of the scope, in ascending order."""
        self._request, self._links, self._numbering = request, links, numbering
        self._kind = request.scope.kind
        self._buckets = [BucketCount() for _ in pairwise(request.edges)]
        self._uniques = 0
        self._sums = {name: np.zeros(0, np.int64) for name in request.dimensions}
        self._facts = {
            fact: wanted
            for fact, dimensions in FACT_DIMENSIONS.items()
            if (wanted := [name for name in dimensions if name in self._sums])
        }

    def add_day(self, day: int, table: ClickTable) -> None:
        """Count the clicks of a UTC day. Each day is added once, with all its clicks."""
        places, is_wanted = self._match_targets(table)
        mask = self._match_clicks(table, is_wanted)
        if mask is None:
            return
        # Of bots nothing but their number is needed, so only the rows of people are looked up.
        is_person = mask & (table.visitors != 0)
        bucket = self._place_day(day)
        if isinstance(bucket, int):
            rows = is_person.nonzero()[0]
            visitors = table.visitors[rows]
            uniques = self._add_bucket(bucket, int(np.count_nonzero(mask)), visitors)
        else:
            inside = (bucket != _OUTSIDE)[table.quarters]
            mask, rows = mask & inside, (is_person & inside).nonzero()[0]
            visitors, buckets = table.visitors[rows], bucket[table.quarters[rows]]
            clicks = np.bincount(bucket[table.quarters[mask]])
            for number in clicks.nonzero()[0].tolist():
                self._add_bucket(number, int(clicks[number]), visitors[buckets == number])
            uniques = _count_unique(visitors)
        self._uniques += uniques
        self._add_values(table, rows, places)

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

    def _add_bucket(self, number: int, clicks: int, people: Numbers) -> int:
        """Add clicks of one day to a bucket; return the unique visitors among the people."""
        uniques = _count_unique(people)
        bucket = self._buckets[number]
        bucket.clicks += people.size
        bucket.bots += clicks - people.size
        bucket.uniques += uniques
        return uniques

    def _add_values(
        self, table: ClickTable, rows: NDArray[np.intp], places: NDArray[np.intp]
    ) -> None:
        if LINKS in self._sums:
            found, counts = _count_numbers(table.targets[rows])
            self._add_counts(LINKS, places[found], counts, self._links.size)
        for fact, dimensions in self._facts.items():
            column = table.facts[fact]
            size = len(column.values[dimensions[0]])
            found, counts = _count_numbers(column.rows[rows]) if size > 1 else _count_all(rows)
            for name in dimensions:
                size = len(self._numbering.numbers[name])
                self._add_counts(name, column.values[name][found], counts, size)

    def _add_counts(self, name: str, numbers: Numbers, counts: Numbers, size: int) -> None:
        if self._sums[name].size < size:
            self._sums[name] = np.pad(self._sums[name], (0, 2 * size - self._sums[name].size))
        np.add.at(self._sums[name], numbers, counts)


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
