"""Top values of a day that has very many, for views of the first ten.

Days are summed up by these alone; of the omitted values, the sum and the largest count are known.
Usually that is enough to determine the top values of all days with certainty. Where it is not, the
breakdowns are read in full.
"""

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final, NamedTuple

from refract.clicks.rollups.breakdowns import (
    OTHER_VALUES,
    BreakdownCounts,
    add_counts,
    decode_counts,
    group_by_letter,
    join_links,
    split_links,
)

MAX_TOP_VALUES: Final = 100
"""Values of each dimension."""
MIN_VALUES: Final = 1_000
"""With fewer values in all dimensions together, the breakdowns are as fast to read."""
_MARKER: Final = b"\1"  # no stored breakdowns begin like this


class OmittedValues(NamedTuple):
    """The omitted clicks of one day and dimension: in total, and of the most frequent value."""

    clicks: int
    max_clicks: int


def encode_top_values(data: bytes | None) -> bytes | None:
    """Return the bytes to store for stored breakdowns; None if there are too few values.

    All links of a group are kept.
    """
    links, rest = split_links(data)
    parts = decode_counts(rest)
    if len(parts) <= MIN_VALUES:
        return None
    kept: BreakdownCounts = {}
    rests: dict[str, OmittedValues] = {}
    for letter, values in group_by_letter(parts).items():
        if OTHER_VALUES in values:
            kept[letter] = values.pop(OTHER_VALUES)
        ranked = sorted(((clicks, value) for value, clicks in values.items()), reverse=True)
        kept.update((letter + value, clicks) for clicks, value in ranked[:MAX_TOP_VALUES])
        if left := ranked[MAX_TOP_VALUES:]:
            rests[letter] = OmittedValues(sum(clicks for clicks, _ in left), left[0][0])
    text = json.dumps([kept, rests], ensure_ascii=False, separators=(",", ":"))
    return join_links(links, _MARKER + zlib.compress(text.encode()))


@dataclass(slots=True)
class BreakdownSum:
    """The sum of breakdowns of several periods, some of them by their top values alone."""

    counts: BreakdownCounts = field(default_factory=dict)
    omitted: dict[str, list[tuple[BreakdownCounts, int]]] = field(default_factory=dict)
    """By letter of the dimension: each day with omitted values.

    A day has its kept counts and the largest omitted count.
    """

    def is_certain(self, letter: str, limit: int) -> bool:
        """Return whether the top values of a dimension and their clicks are certain.

        That is, whether no omitted value can change them.
        """
        days = self.omitted.get(letter)
        if days is None:
            return True
        values = {
            key: clicks for key, clicks in self.counts.items() if key[0] == letter and len(key) > 1
        }
        first = nsmallest(limit, ((-clicks, key) for key, clicks in values.items()))
        least, slack = -first[-1][0], sum(most for _, most in days)
        if len(first) < limit or slack >= least:
            return False
        if any(key not in kept for _, key in first for kept, _ in days):
            return False
        near = (key for key, clicks in values.items() if least - slack <= clicks <= least)
        return not any(_can_overtake(key, values[key], least, days) for key in near)


def _can_overtake(
    key: str, clicks: int, least: int, days: list[tuple[BreakdownCounts, int]]
) -> bool:
    missing = sum(most for kept, most in days if key not in kept)
    return bool(missing) and clicks + missing >= least


def sum_breakdowns(stored: Iterable[bytes | BreakdownCounts | None]) -> BreakdownSum:
    """Return the sum of breakdowns, stored or decoded, and of encoded top values; no links."""
    whole = BreakdownSum()
    for data in stored:
        if isinstance(data, dict):
            add_counts(whole.counts, data)
            continue
        _, values = split_links(data)
        if not values or values[:1] != _MARKER:
            add_counts(whole.counts, decode_counts(values))
            continue
        kept, rests = json.loads(zlib.decompress(values[1:]))
        add_counts(whole.counts, kept)
        for letter, (clicks, most) in rests.items():
            whole.counts[letter] = whole.counts.get(letter, 0) + clicks
            whole.omitted.setdefault(letter, []).append((kept, most))
    return whole
