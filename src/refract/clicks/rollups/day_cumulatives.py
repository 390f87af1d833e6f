"""A UTC day seen from either end: at each quarter hour, how many clicks and visitors came before it and how many visitors after.

A day of another time zone is the end of one UTC day and the beginning of the next, and visitors of two UTC days share nobody. So two of
these answer for it, however many visitors there were, where sketches of all its hours would have to be merged.
"""

import zlib
from collections.abc import Iterable
from itertools import accumulate
from struct import Struct
from typing import Final, NamedTuple

from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, QUARTER
from refract.clicks.rollups.sketches import count_cumulatively

QUARTERS_PER_DAY: Final = GRAIN_SECONDS[DAY] // GRAIN_SECONDS[QUARTER]
_BOUNDARIES: Final = QUARTERS_PER_DAY + 1  # both ends of the day are among them
_LAYOUT: Final = Struct(f"<{4 * _BOUNDARIES}I")


class QuarterHour(NamedTuple):
    """What is kept of a quarter hour, the first of the day being number 0."""

    number: int
    people: int
    bots: int
    visitors: bytes | None


class DayPart(NamedTuple):
    """What happened in a part of a day."""

    people: int
    bots: int
    uniques: int


def encode_day(quarters: Iterable[QuarterHour]) -> bytes:
    """The bytes to store of a day, from all its quarters in which anything happened."""
    people, bots = [0] * _BOUNDARIES, [0] * _BOUNDARIES
    visitors: list[bytes | None] = [None] * QUARTERS_PER_DAY
    for quarter in quarters:
        people[quarter.number + 1], bots[quarter.number + 1] = quarter.people, quarter.bots
        visitors[quarter.number] = quarter.visitors
    before = [0, *count_cumulatively(visitors)]
    after = [0, *count_cumulatively(reversed(visitors))]
    return zlib.compress(
        _LAYOUT.pack(*accumulate(people), *accumulate(bots), *before, *reversed(after))
    )


def read_before(data: bytes, quarter: int) -> DayPart:
    """From midnight to the beginning of this quarter hour."""
    values = _LAYOUT.unpack(zlib.decompress(data))
    return DayPart(
        values[quarter], values[_BOUNDARIES + quarter], values[2 * _BOUNDARIES + quarter]
    )


def read_after(data: bytes, quarter: int) -> DayPart:
    """From the beginning of this quarter hour to midnight."""
    values = _LAYOUT.unpack(zlib.decompress(data))
    people, bots = (
        values[_BOUNDARIES - 1] - values[quarter],
        values[2 * _BOUNDARIES - 1] - values[_BOUNDARIES + quarter],
    )
    return DayPart(people, bots, values[3 * _BOUNDARIES + quarter])
