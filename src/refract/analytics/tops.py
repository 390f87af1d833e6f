"""The most frequent values of a day that has very many, for who wants to see the first ten.

Days are added up by these alone; what they leave out is known as a sum and as the most that any value in it has. Mostly that is enough to
know the first of all days for certain. Where it is not, nobody guesses: the breakdowns are read in full.
"""

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final, NamedTuple

from refract.analytics.parts import OTHER, Parts, add, by_letter, decode

KEPT: Final = 100
"""Values of each dimension."""
MANY: Final = 1_000
"""With fewer values in all dimensions together, the breakdowns themselves are as quick to read."""
_MARK: Final = b"\1"  # no stored breakdowns begin so


class Rest(NamedTuple):
    """What was left out of one day and dimension: clicks in all, and of the most frequent value."""

    clicks: int
    most: int


def encode(parts: Parts) -> bytes | None:
    """The bytes to store; None where it is not worth it."""
    if len(parts) <= MANY:
        return None
    kept: Parts = {}
    rests: dict[str, Rest] = {}
    for letter, values in by_letter(parts).items():
        if OTHER in values:
            kept[letter] = values.pop(OTHER)
        ranked = sorted(((clicks, value) for value, clicks in values.items()), reverse=True)
        kept.update((letter + value, clicks) for clicks, value in ranked[:KEPT])
        if left := ranked[KEPT:]:
            rests[letter] = Rest(sum(clicks for clicks, _ in left), left[0][0])
    return _MARK + zlib.compress(json.dumps([kept, rests], ensure_ascii=False, separators=(",", ":")).encode())


@dataclass(slots=True)
class Sum:
    """Breakdowns of several stretches added up, some of them by their most frequent values alone."""

    parts: Parts = field(default_factory=dict)
    left: dict[str, list[tuple[Parts, int]]] = field(default_factory=dict)
    """By the letter of the dimension: each day of which values were left out, what was kept of it, and the most that one has."""

    def is_certain(self, letter: str, shown: int) -> bool:
        """Whether nothing that was left out can change which values of a dimension are the first, or their clicks."""
        days = self.left.get(letter)
        if days is None:
            return True
        values = {key: clicks for key, clicks in self.parts.items() if key[0] == letter and len(key) > 1}
        first = nsmallest(shown, ((-clicks, key) for key, clicks in values.items()))
        least, slack = -first[-1][0], sum(most for _, most in days)
        if len(first) < shown or slack >= least:
            return False
        if any(key not in kept for _, key in first for kept, _ in days):
            return False
        near = (key for key, clicks in values.items() if least - slack <= clicks <= least)
        return not any(_might_pass(key, values[key], least, days) for key in near)


def _might_pass(key: str, clicks: int, least: int, days: list[tuple[Parts, int]]) -> bool:
    missing = sum(most for kept, most in days if key not in kept)
    return bool(missing) and clicks + missing >= least


def added(stored: Iterable[bytes | None]) -> Sum:
    """The sum of stored breakdowns, and of what `encode` made of some."""
    whole = Sum()
    for data in stored:
        if not data or data[:1] != _MARK:
            add(whole.parts, decode(data))
            continue
        kept, rests = json.loads(zlib.decompress(data[1:]))
        add(whole.parts, kept)
        for letter, (clicks, most) in rests.items():
            whole.parts[letter] = whole.parts.get(letter, 0) + clicks
            whole.left.setdefault(letter, []).append((kept, most))
    return whole
