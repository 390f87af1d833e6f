"""Stored breakdowns: clicks by value for each dimension, rare values beyond a thousand summed up.

Absent values (no campaign, an unknown city) are not stored: they are the rest of the identifiable
clicks. The default domain is stored as absent too, since nearly all clicks are on it, and so are an
unknown language and the destination of the link, if no rule decided; every such click has a device,
so readers know how many there are.

While they are summed up, all dimensions are in one dict, whose keys begin with a letter for the
dimension: one dict costs an eighth of eight, and the garbage collector skips it.
"""

import json
import zlib
from collections.abc import Callable
from heapq import nsmallest
from struct import Struct
from typing import Final, cast

from refract.clicks import compiled
from refract.clicks.languages import UNKNOWN_LANGUAGE

DIMENSIONS: Final = (
    "devices",
    "referrers",
    "countries",
    "cities",
    "campaigns",
    "browsers",
    "systems",
    "nodes",
    "domains",
    "languages",
    "rules",
)
"""Stored roll-ups refer to their places: append, never change the order."""

DEFAULT_DOMAIN: Final = "/"
"""The value of clicks on the default domain, which stored clicks leave out; no host is like it."""
NO_RULE: Final = "none"
"""The value of clicks that no rule decided about."""
ABSENT_VALUES: Final = {
    "domains": DEFAULT_DOMAIN,
    "languages": UNKNOWN_LANGUAGE,
    "rules": NO_RULE,
}
"""The values that stored clicks leave out, by dimension."""
OTHER_VALUES: Final = ""
"""The key of the clicks beyond the values that are kept; no value is empty."""
MAX_VALUES: Final = 1000
_MIN_PACKED_BYTES: Final = 400

_DIMENSION_LETTERS: Final = {name: chr(ord("a") + place) for place, name in enumerate(DIMENSIONS)}

LINKS_LETTER: Final = "L"
"""The letter of the links, by which groups of links are broken down besides."""
_LINKS_MARKER: Final = b"\2"  # no other stored breakdowns begin like this
_LINKS_SIZE: Final = Struct("<I")
_LINK_CLICKS: Final = Struct("<qq")
_OTHER_LINKS: Final = 0
"""Instead of an id: the clicks beyond the links that are kept."""

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


def encode_group_counts(parts: BreakdownCounts, *, pack: bool = False) -> bytes | None:
    """Return the bytes to store for a group of links.

    Its links come first, in a form of their own: there may be a thousand in each row, and reading
    other dimensions must not depend on them.
    """
    values = {key: clicks for key, clicks in parts.items() if key[0] != LINKS_LETTER}
    links = b"".join(
        _LINK_CLICKS.pack(int(key[1:] or _OTHER_LINKS), clicks)
        for key, clicks in parts.items()
        if key[0] == LINKS_LETTER
    )
    return join_links(links, encode_counts(values, pack=pack))


def join_links(links: bytes, data: bytes | None) -> bytes | None:
    """Return stored breakdowns, or top values, behind the links of a group."""
    if not links:
        return data
    return b"".join((_LINKS_MARKER, _LINKS_SIZE.pack(len(links)), links, data or b""))


def split_links(data: bytes | None) -> tuple[bytes, bytes | None]:
    """Undo `join_links`."""
    if not data or data[:1] != _LINKS_MARKER:
        return b"", data
    begin = len(_LINKS_MARKER) + _LINKS_SIZE.size
    end = begin + _LINKS_SIZE.unpack_from(data, len(_LINKS_MARKER))[0]
    return data[begin:end], data[end:] or None


def decode_counts(data: bytes | None) -> BreakdownCounts:
    if not data:
        return {}
    if data[:1] == _LINKS_MARKER:
        links, rest = split_links(data)
        found = _LINK_CLICKS.iter_unpack(links)
        return decode_counts(rest) | {
            f"{LINKS_LETTER}{link_id or OTHER_VALUES}": clicks for link_id, clicks in found
        }
    plain = data if data[:1] == b"{" else zlib.decompress(data)
    return _decode_quickly(plain) or cast("BreakdownCounts", json.loads(plain.decode()))


def _rank_links(sections: list[bytes], limit: int) -> list[tuple[int, int]]:
    """Return the most clicked of all links in these sections, with their clicks; ties by id."""
    sums: dict[int, int] = {}
    for section in sections:
        for link_id, clicks in _LINK_CLICKS.iter_unpack(section):
            sums[link_id] = sums.get(link_id, 0) + clicks
    sums.pop(_OTHER_LINKS, None)
    ranked = nsmallest(limit, ((-clicks, link_id) for link_id, clicks in sums.items()))
    return [(link_id, -clicks) for clicks, link_id in ranked]


rank_links = compiled.choose(_rank_links, "rank_links")


def group_by_dimension(parts: BreakdownCounts) -> BreakdownsByDimension:
    """Return the counts by name of the dimension."""
    by_letter = group_by_letter(parts)
    found = {name: by_letter.get(letter, {}) for name, letter in _DIMENSION_LETTERS.items()}
    identifiable = sum(found["devices"].values())
    for dimension, value in ABSENT_VALUES.items():
        if rest := identifiable - sum(found[dimension].values()):
            found[dimension][value] = rest
    return found


def get_dimension_letter(dimension: str) -> str:
    return _DIMENSION_LETTERS[dimension]


def group_by_letter(parts: BreakdownCounts) -> dict[str, dict[str, int]]:
    """Return the counts by letter of the dimension, only of dimensions that have any."""
    found: dict[str, dict[str, int]] = {}
    for value, clicks in parts.items():
        found.setdefault(value[0], {})[value[1:]] = clicks
    return found
