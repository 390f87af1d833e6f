"""Cumulative counts of a UTC day, from both ends.

At each quarter hour: clicks and visitors before it, and visitors after it. A day of another time
zone is the end of one UTC day and the beginning of the next, and two UTC days have no visitors in
common. So two of these suffice for it, however many visitors there were, instead of merging
sketches of all its hours.
"""

import zlib
from collections.abc import Iterable
from itertools import accumulate
from struct import Struct
from typing import Final, NamedTuple

from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, QUARTER
from refract.clicks.rollups.sketches import count_cumulatively

QUARTERS_PER_DAY: Final = GRAIN_SECONDS[DAY] // GRAIN_SECONDS[QUARTER]
_BOUNDARIES: Final = QUARTERS_PER_DAY + 1  # includes both ends of the day
_LAYOUT: Final = Struct(f"<{4 * _BOUNDARIES}I")
_WINDOW_BITS: Final = 12  # a window of 4 kB, for 1.5 kB
_MEMORY_LEVEL: Final = 5


class QuarterHour(NamedTuple):
    """The stored counts of a quarter hour. The first of the day has number 0."""

    number: int
    people: int
    bots: int
    visitors: bytes | None


class DayPart(NamedTuple):
    """The counts of a part of a day."""

    people: int
    bots: int
    uniques: int


def encode_day(quarters: Iterable[QuarterHour]) -> bytes:
    """Encode a day from all its quarter hours that have clicks."""
    people, bots = [0] * _BOUNDARIES, [0] * _BOUNDARIES
    visitors: list[bytes | None] = [None] * QUARTERS_PER_DAY
    for quarter in quarters:
        people[quarter.number + 1], bots[quarter.number + 1] = quarter.people, quarter.bots
        visitors[quarter.number] = quarter.visitors
    before = [0, *count_cumulatively(visitors)]
    after = [0, *count_cumulatively(reversed(visitors))]
    return _compress(
        _LAYOUT.pack(*accumulate(people), *accumulate(bots), *before, *reversed(after))
    )


def _compress(data: bytes) -> bytes:
    """Compress with a window that fits: setting up zlib's largest takes longer than using it."""
    packer = zlib.compressobj(wbits=_WINDOW_BITS, memLevel=_MEMORY_LEVEL)
    return packer.compress(data) + packer.flush()


def read_before(data: bytes, quarter: int) -> DayPart:
    """Return the counts from midnight to the beginning of this quarter hour."""
    values = _LAYOUT.unpack(zlib.decompress(data))
    return DayPart(
        values[quarter], values[_BOUNDARIES + quarter], values[2 * _BOUNDARIES + quarter]
    )


def read_after(data: bytes, quarter: int) -> DayPart:
    """Return the counts from the beginning of this quarter hour to midnight."""
    values = _LAYOUT.unpack(zlib.decompress(data))
    people, bots = (
        values[_BOUNDARIES - 1] - values[quarter],
        values[2 * _BOUNDARIES - 1] - values[_BOUNDARIES + quarter],
    )
    return DayPart(people, bots, values[3 * _BOUNDARIES + quarter])
