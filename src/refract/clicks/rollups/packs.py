"""Packs: all quarter hours of a target with few clicks in a month, in one row. Pure.

The row of a click costs more than the click, and most links have few. A pack is a sequence of
entries, each with the clicks, visitors and breakdowns of a quarter hour; a quarter hour may have
several. New ones are appended without reading the others.

An entry begins with its quarter hour in the month, doubled, as a number of seven bits a byte. An
even number is followed by a single click of a person: the visitor, and the values of its
breakdowns. An odd one is followed by people, bots, private clicks, visitors, and values with their
clicks.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from refract.clicks.ingest.batch import RollupDelta
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, QUARTER
from refract.clicks.rollups.rows import add_delta
from refract.clicks.rollups.sketches import HASH_BYTES

MAX_PACK_BYTES: Final = 4096
"""Size from which on further days of the month get rows of their own, about a hundred clicks."""
_QUARTER_SECONDS: Final = GRAIN_SECONDS[QUARTER]
_DAY_SECONDS: Final = GRAIN_SECONDS[DAY]
_COUNTRY: Final = 255
_LONG_VALUE: Final = 254
_FIRST_KNOWN: Final = 128
# Values of one byte, by their place. Stored packs refer to these: append, never change the order.
_KNOWN_VALUES: Final = (
    *("adesktop", "amobile", "atablet", "bdirect"),
    *(
        "fChrome",
        "fChrome Mobile",
        "fChrome Mobile WebView",
        "fChrome Mobile iOS",
        "fMobile Safari",
    ),
    *("fMobile Safari UI/WKWebView", "fSafari", "fFirefox", "fFirefox Mobile", "fFirefox iOS"),
    *("fEdge", "fEdge Mobile", "fOpera", "fOpera Mobile", "fSamsung Internet", "fInstagram"),
    *("fFacebook", "fGoogle", "fIE", "fBrave", "fDuckDuckGo Mobile", "fYandex Browser"),
    *("gWindows", "gMac OS X", "gLinux", "gUbuntu", "gAndroid", "giOS", "gChrome OS"),
    *("bwww.google.com", "bt.co", "bwww.facebook.com", "bm.facebook.com", "bl.facebook.com"),
    *("bwww.linkedin.com", "bwww.reddit.com", "bnews.ycombinator.com", "bduckduckgo.com"),
    *("bwww.bing.com", "bwww.youtube.com", "bgithub.com", "bwww.instagram.com"),
)
_CODES: Final = {value: bytes((place,)) for place, value in enumerate(_KNOWN_VALUES, _FIRST_KNOWN)}


def encode_entry(month: int, start: int, delta: RollupDelta) -> bytes | None:
    """Return the entry of a quarter hour; None if it has too many visitors to be packed."""
    visitors = set(delta.visitors)
    if delta.sketch is not None:
        if delta.sketch.many is not None:
            return None
        visitors |= delta.sketch.few
    number = (start - month) // _QUARTER_SECONDS
    clicks = (delta.people, delta.bots, delta.private)
    if clicks == (1, 0, 0) and len(visitors) == 1 and all(n == 1 for n in delta.parts.values()):
        values = b"".join(map(_encode_value, delta.parts))
        return b"".join(
            (_encode_number(2 * number), *visitors, _encode_number(len(delta.parts)), values)
        )
    numbers = (2 * number + 1, *clicks, len(visitors))
    counts = (
        _encode_value(value) + _encode_number(clicks) for value, clicks in delta.parts.items()
    )
    return b"".join(
        (
            *map(_encode_number, numbers),
            *sorted(visitors),
            _encode_number(len(delta.parts)),
            *counts,
        )
    )


def iter_entries(month: int, data: bytes) -> Iterator[tuple[int, RollupDelta]]:
    """Yield the beginning and the clicks of each entry."""
    at = 0
    while at < len(data):
        delta = RollupDelta()
        number, at = _decode_number(data, at)
        is_single = number % 2 == 0
        visitors = delta.people = 1
        if not is_single:
            delta.people, at = _decode_number(data, at)
            delta.bots, at = _decode_number(data, at)
            delta.private, at = _decode_number(data, at)
            visitors, at = _decode_number(data, at)
        for _ in range(visitors):
            delta.visitors.append(data[at : at + HASH_BYTES])
            at += HASH_BYTES
        values, at = _decode_number(data, at)
        for _ in range(values):
            value, at = _decode_value(data, at)
            delta.parts[value], at = (1, at) if is_single else _decode_number(data, at)
        yield month + number // 2 * _QUARTER_SECONDS, delta


def split_pack(
    month: int, data: bytes, days: Iterable[int]
) -> tuple[bytes, dict[int, RollupDelta]]:
    """Remove the entries of some days; return the others, and the removed quarter hours."""
    chosen, kept = set(days), []
    removed: dict[int, RollupDelta] = {}
    for start, delta in iter_entries(month, data):
        if start - start % _DAY_SECONDS not in chosen:
            kept.append(encode_entry(month, start, delta) or b"")
        elif start in removed:
            add_delta(removed[start], delta)
        else:
            removed[start] = delta
    return b"".join(kept), removed


def _encode_number(number: int) -> bytes:
    if number < 128:
        return bytes((number,))
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _decode_number(data: bytes, at: int) -> tuple[int, int]:
    number = data[at]
    if number < 128:
        return number, at + 1
    number, shift = number & 127, 7
    while True:
        at += 1
        number |= (data[at] & 127) << shift
        if data[at] < 128:
            return number, at + 1
        shift += 7


def _encode_value(value: str) -> bytes:
    """Return a code, the two letters of a country, or the length and the text."""
    if code := _CODES.get(value):
        return code
    if value[0] == "c" and len(value) == 3 and value.isascii():
        return bytes((_COUNTRY,)) + value[1:].encode()
    text = value.encode()
    if len(text) < _FIRST_KNOWN:
        return bytes((len(text),)) + text
    return bytes((_LONG_VALUE,)) + _encode_number(len(text)) + text


def _decode_value(data: bytes, at: int) -> tuple[str, int]:
    code = data[at]
    if code == _COUNTRY:
        return "c" + data[at + 1 : at + 3].decode(), at + 3
    if _FIRST_KNOWN <= code < _LONG_VALUE:
        return _KNOWN_VALUES[code - _FIRST_KNOWN], at + 1
    length, at = _decode_number(data, at + 1) if code == _LONG_VALUE else (code, at + 1)
    return data[at : at + length].decode(), at + length
