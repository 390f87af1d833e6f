"""Breakdowns as they are kept: clicks by value, for each dimension, the rare values beyond a thousand together.

Who said nothing (no campaign, an unknown city) is not written down: it is what remains of the people who can be told apart.

While they are added up, all dimensions lie in one dict, whose keys begin with a letter for the dimension: one dict costs an eighth
of eight, and the collector of garbage passes it by.
"""

import json
import zlib
from typing import Final

DIMENSIONS: Final = ("devices", "referrers", "countries", "cities", "campaigns", "browsers", "systems", "nodes")
OTHER: Final = ""
"""The key of everything beyond the values that are kept; no value is empty."""
MOST_VALUES: Final = 1000
_WORTH_PACKING: Final = 400

_LETTERS: Final = {name: chr(ord("a") + place) for place, name in enumerate(DIMENSIONS)}

Parts = dict[str, int]
"""Clicks by value, each value behind the letter of its dimension."""
Breakdowns = dict[str, dict[str, int]]
"""Clicks by value, by the name of the dimension: every one is there."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def key(dimension: str, value: str) -> str:
    return _LETTERS[dimension] + value


def add(into: Parts, more: Parts) -> None:
    """Add breakdowns to others; `more` is left as it was."""
    for value, clicks in more.items():
        into[value] = into.get(value, 0) + clicks


def limited(parts: Parts) -> Parts:
    """With the thousand most frequent values of each dimension, and what the others add up to."""
    if len(parts) <= MOST_VALUES:
        return parts
    kept: Parts = {}
    for letter, values in by_letter(parts).items():
        other = values.pop(OTHER, 0)
        ranked = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
        kept.update((letter + value, clicks) for value, clicks in ranked[:MOST_VALUES])
        other += sum(clicks for _, clicks in ranked[MOST_VALUES:])
        if other:
            kept[letter] = other
    return kept


def encode(parts: Parts, *, pack: bool = False) -> bytes | None:
    """The bytes to store; packed where they will be read more often than written. None when there is nothing to say."""
    if not parts:
        return None
    plain = _encode(parts).encode()
    return zlib.compress(plain, 6) if pack and len(plain) > _WORTH_PACKING else plain


def decode(data: bytes | None) -> Parts:
    if not data:
        return {}
    parts: Parts = json.loads(data if data[:1] == b"{" else zlib.decompress(data))
    return parts


def breakdowns(parts: Parts) -> Breakdowns:
    """By dimension, as people ask for them."""
    found = by_letter(parts)
    return {name: found.get(letter, {}) for name, letter in _LETTERS.items()}


def letter_of(dimension: str) -> str:
    return _LETTERS[dimension]


def by_letter(parts: Parts) -> dict[str, dict[str, int]]:
    """Clicks by value, by the letter of the dimension: those that have any."""
    found: dict[str, dict[str, int]] = {}
    for value, clicks in parts.items():
        found.setdefault(value[0], {})[value[1:]] = clicks
    return found
