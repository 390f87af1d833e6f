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
from refract.clicks.rollups.breakdowns import DEFAULT_DOMAIN
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, QUARTER

DAY_SECONDS: Final = GRAIN_SECONDS[DAY]
_QUARTER_SECONDS: Final = GRAIN_SECONDS[QUARTER]
_OUTSIDE: Final = -1
_HASH_BYTES: Final = 8
_ABSENT_VALUES: Final = {"domains": DEFAULT_DOMAIN}
"""Names of absent values, by dimension."""
_NO_ROWS: Final = np.empty(0, np.intp)


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
        rows = self._select_rows(table, is_wanted)
        if not rows.size:
            return
        visitors = table.visitors[rows]
        bucket = self._place_day(day)
        if isinstance(bucket, int):
            is_person = visitors != 0
            uniques = self._add_bucket(bucket, visitors.size, visitors[is_person])
        else:
            buckets = bucket[table.quarters[rows]]
            inside = buckets != _OUTSIDE
            rows, visitors, buckets = rows[inside], visitors[inside], buckets[inside]
            is_person = visitors != 0
            for number in np.unique(buckets).tolist():
                chosen = buckets == number
                people = visitors[chosen & is_person]
                self._add_bucket(number, int(np.count_nonzero(chosen)), people)
            uniques = _count_unique(visitors[is_person])
        self._uniques += uniques
        self._add_values(table, rows[is_person], places)

    def build_result(self, kept_from: int) -> CountResult:
        values: dict[str, Counter[str]] = {}
        for name, sums in self._sums.items():
            found = np.flatnonzero(sums).tolist()
            if name == LINKS:
                values[name] = Counter({str(self._links[at]): int(sums[at]) for at in found})
                continue
            known = list(self._numbering.numbers[name])
            absent = _ABSENT_VALUES.get(name)
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

    def _select_rows(self, table: ClickTable, is_wanted: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the rows of wanted targets that have the values of the request."""
        if not is_wanted.any():
            return _NO_ROWS
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
                return _NO_ROWS
            mask = rows if mask is None else mask & rows
        return np.arange(table.targets.size) if mask is None else mask.nonzero()[0]

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
            found, counts = _count_numbers(column.rows[rows])
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


def _count_unique(visitors: Numbers) -> int:
    if not visitors.size:
        return 0
    if visitors.itemsize == _HASH_BYTES:
        return int(np.unique(visitors).size)
    seen = np.zeros(int(visitors.max()) + 1, bool)
    seen[visitors] = True
    return int(np.count_nonzero(seen))
