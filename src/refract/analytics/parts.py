"""Breakdowns as they are kept: clicks by value, for each dimension, the rare values beyond a thousand together.

Who said nothing (no campaign, an unknown city) is not written down: it is what remains of the people who can be told apart.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Final

DIMENSIONS: Final = ("devices", "referrers", "countries", "cities", "campaigns", "browsers", "systems", "nodes")
OTHER: Final = ""
"""The key of everything beyond the values that are kept; no value is empty."""
MOST_VALUES: Final = 1000
_WORTH_PACKING: Final = 400

Parts = list[dict[str, int]]
"""Clicks by value, one dict for each dimension in the order of `DIMENSIONS`."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def nothing() -> Parts:
    return [{} for _ in DIMENSIONS]


def add(into: Parts, more: Parts) -> None:
    """Add breakdowns to others; `more` is left as it was."""
    for mine, theirs in zip(into, more, strict=True):
        for value, clicks in theirs.items():
            mine[value] = mine.get(value, 0) + clicks


def limit(parts: Parts) -> None:
    """Keep the thousand most frequent values of each dimension, and what the others add up to."""
    for place, values in enumerate(parts):
        if len(values) > MOST_VALUES + (OTHER in values):
            parts[place] = _limited(values)


def _limited(values: Mapping[str, int]) -> dict[str, int]:
    ranked = sorted(((-clicks, value) for value, clicks in values.items() if value != OTHER))
    kept = {value: -clicks for clicks, value in ranked[:MOST_VALUES]}
    kept[OTHER] = values.get(OTHER, 0) - sum(clicks for clicks, _ in ranked[MOST_VALUES:])
    return kept


def encode(parts: Parts, *, pack: bool = False) -> bytes | None:
    """The bytes to store; packed where they will be read more often than written. None when there is nothing to say."""
    if not any(parts):
        return None
    plain = _encode(parts).encode()
    return zlib.compress(plain, 6) if pack and len(plain) > _WORTH_PACKING else plain


def decode(data: bytes | None) -> Parts:
    if not data:
        return nothing()
    parts: Parts = json.loads(data if data[:1] == b"[" else zlib.decompress(data))
    return parts
