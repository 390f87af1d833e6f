"""Breakdowns as they are kept: clicks by value, for each dimension, the rare values beyond a thousand together.

Who said nothing (no campaign, an unknown city) is not written down: it is what remains of the people who can be told apart.

While they are added up, all dimensions lie in one dict, whose keys begin with a letter for the dimension: one dict costs an eighth
of eight, and the collector of garbage passes it by.
"""

import json
import zlib
from typing import Final

DIMENSIONS: Final = (
    "devices",
    "referrers",
    "countries",
    "cities",
    "campaigns",
    "browsers",
    "systems",
    "nodes",
)
OTHER_VALUES: Final = ""
"""The key of everything beyond the values that are kept; no value is empty."""
MAX_VALUES: Final = 1000
_MIN_PACKED_BYTES: Final = 400

_DIMENSION_LETTERS: Final = {name: chr(ord("a") + place) for place, name in enumerate(DIMENSIONS)}

BreakdownCounts = dict[str, int]
"""Clicks by value, each value behind the letter of its dimension."""
BreakdownsByDimension = dict[str, dict[str, int]]
"""Clicks by value, by the name of the dimension: every one is there."""

_encode_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False
).encode


def build_breakdown_key(dimension: str, value: str) -> str:
    return _DIMENSION_LETTERS[dimension] + value


def add_counts(into: BreakdownCounts, more: BreakdownCounts) -> None:
    """Add breakdowns to others; `more` is left as it was."""
    for value, clicks in more.items():
        into[value] = into.get(value, 0) + clicks


def limit_values(parts: BreakdownCounts) -> BreakdownCounts:
    """With the thousand most frequent values of each dimension, and what the others add up to."""
    if len(parts) <= MAX_VALUES:
        return parts
    kept: BreakdownCounts = {}
    for letter, values in group_by_letter(parts).items():
        other = values.pop(OTHER_VALUES, 0)
        ranked = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
        kept.update((letter + value, clicks) for value, clicks in ranked[:MAX_VALUES])
        other += sum(clicks for _, clicks in ranked[MAX_VALUES:])
        if other:
            kept[letter] = other
    return kept


def encode_counts(parts: BreakdownCounts, *, pack: bool = False) -> bytes | None:
    """The bytes to store; packed where they will be read more often than written. None when there is nothing to say."""
    if not parts:
        return None
    plain = _encode_json(parts).encode()
    return zlib.compress(plain, 6) if pack and len(plain) > _MIN_PACKED_BYTES else plain


def decode_counts(data: bytes | None) -> BreakdownCounts:
    if not data:
        return {}
    parts: BreakdownCounts = json.loads(data if data[:1] == b"{" else zlib.decompress(data))
    return parts


def group_by_dimension(parts: BreakdownCounts) -> BreakdownsByDimension:
    """By dimension, as people ask for them."""
    found = group_by_letter(parts)
    return {name: found.get(letter, {}) for name, letter in _DIMENSION_LETTERS.items()}


def get_dimension_letter(dimension: str) -> str:
    return _DIMENSION_LETTERS[dimension]


def group_by_letter(parts: BreakdownCounts) -> dict[str, dict[str, int]]:
    """Clicks by value, by the letter of the dimension: those that have any."""
    found: dict[str, dict[str, int]] = {}
    for value, clicks in parts.items():
        found.setdefault(value[0], {})[value[1:]] = clicks
    return found
