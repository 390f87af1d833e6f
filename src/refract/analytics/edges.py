"""A UTC day seen from either end: at each quarter hour, how many clicks and visitors came before it and how many visitors after.

A day of another time zone is the end of one UTC day and the beginning of the next, and visitors of two UTC days share nobody. So two of
these answer for it, however many visitors there were, where sketches of all its hours would have to be merged.
"""

import zlib
from collections.abc import Iterable
from itertools import accumulate
from struct import Struct
from typing import Final, NamedTuple

from refract.analytics.grains import DAY, QUARTER, SECONDS
from refract.analytics.sketches import growing

QUARTERS: Final = SECONDS[DAY] // SECONDS[QUARTER]
_MOMENTS: Final = QUARTERS + 1  # both ends of the day are among them
_LAYOUT: Final = Struct(f"<{4 * _MOMENTS}I")


class Quarter(NamedTuple):
    """What is kept of a quarter hour, the first of the day being number 0."""

    number: int
    people: int
    bots: int
    visitors: bytes | None


class Part(NamedTuple):
    """What happened in a part of a day."""

    people: int
    bots: int
    uniques: int


def encode(quarters: Iterable[Quarter]) -> bytes:
    """The bytes to store of a day, from all its quarters in which anything happened."""
    people, bots = [0] * _MOMENTS, [0] * _MOMENTS
    visitors: list[bytes | None] = [None] * QUARTERS
    for quarter in quarters:
        people[quarter.number + 1], bots[quarter.number + 1] = quarter.people, quarter.bots
        visitors[quarter.number] = quarter.visitors
    before = [0, *growing(visitors)]
    after = [0, *growing(reversed(visitors))]
    return zlib.compress(_LAYOUT.pack(*accumulate(people), *accumulate(bots), *before, *reversed(after)))


def before(data: bytes, quarter: int) -> Part:
    """From midnight to the beginning of this quarter hour."""
    values = _LAYOUT.unpack(zlib.decompress(data))
    return Part(values[quarter], values[_MOMENTS + quarter], values[2 * _MOMENTS + quarter])


def after(data: bytes, quarter: int) -> Part:
    """From the beginning of this quarter hour to midnight."""
    values = _LAYOUT.unpack(zlib.decompress(data))
    people, bots = values[_MOMENTS - 1] - values[quarter], values[2 * _MOMENTS - 1] - values[_MOMENTS + quarter]
    return Part(people, bots, values[3 * _MOMENTS + quarter])
