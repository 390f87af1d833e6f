"""Stored breakdowns: clicks by value for each dimension, rare values beyond a thousand summed up.

Absent values (no campaign, an unknown city) are not stored: they are the rest of the identifiable
clicks.

While they are summed up, all dimensions are in one dict, whose keys begin with a letter for the
dimension: one dict costs an eighth of eight, and the garbage collector skips it.
"""

import json
import zlib
from collections.abc import Callable
from typing import Final, cast

from refract.clicks import compiled

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
"""The key of the clicks beyond the values that are kept; no value is empty."""
MAX_VALUES: Final = 1000
_MIN_PACKED_BYTES: Final = 400

_DIMENSION_LETTERS: Final = {name: chr(ord("a") + place) for place, name in enumerate(DIMENSIONS)}

LINKS_LETTER: Final = "L"
"""The letter of the links, by which groups of links are broken down besides."""

BreakdownCounts = dict[str, int]
"""Clicks by value, each value prefixed by the letter of its dimension."""
BreakdownsByDimension = dict[str, dict[str, int]]
"""Clicks by value, by name of the dimension; every dimension is present."""

_encode_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False
).encode


def _do_slowly(_counts: object) -> None:
    """Leave it to the JSON module, where nothing was compiled."""


_encode_quickly: Callable[[BreakdownCounts], bytes | None] = compiled.choose(
    _do_slowly, "encode_json"
)
_decode_quickly: Callable[[bytes], BreakdownCounts | None] = compiled.choose(
    _do_slowly, "decode_json"
)


def build_breakdown_key(dimension: str, value: str) -> str:
    return _DIMENSION_LETTERS[dimension] + value


def _add_counts(into: BreakdownCounts, more: BreakdownCounts) -> None:
    """Add breakdowns to others, leaving `more` unchanged."""
    for value, clicks in more.items():
        into[value] = into.get(value, 0) + clicks


add_counts = compiled.choose(_add_counts, "add_counts")


def limit_values(parts: BreakdownCounts) -> BreakdownCounts:
    """Keep the thousand top values of each dimension, and the sum of the others."""
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
    """Return the bytes to store, None if there are no counts.

    `pack` them where they are read more often than written.
    """
    if not parts:
        return None
    plain = _encode_quickly(parts) or _encode_json(parts).encode()
    return zlib.compress(plain, 6) if pack and len(plain) > _MIN_PACKED_BYTES else plain


def decode_counts(data: bytes | None) -> BreakdownCounts:
    if not data:
        return {}
    plain = data if data[:1] == b"{" else zlib.decompress(data)
    return _decode_quickly(plain) or cast("BreakdownCounts", json.loads(plain.decode()))


def group_by_dimension(parts: BreakdownCounts) -> BreakdownsByDimension:
    """Return the counts by name of the dimension."""
    found = group_by_letter(parts)
    return {name: found.get(letter, {}) for name, letter in _DIMENSION_LETTERS.items()}


def get_dimension_letter(dimension: str) -> str:
    return _DIMENSION_LETTERS[dimension]


def group_by_letter(parts: BreakdownCounts) -> dict[str, dict[str, int]]:
    """Return the counts by letter of the dimension, only of dimensions that have any."""
    found: dict[str, dict[str, int]] = {}
    for value, clicks in parts.items():
        found.setdefault(value[0], {})[value[1:]] = clicks
    return found
