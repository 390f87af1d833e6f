"""Hosts that imitate others: labels of mixed scripts (UTS 39), and labels that look like Latin."""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from refract.core.unicode_scripts import SCRIPT_RANGES
from refract.core.urls import BadUrl, parse_web_url

_ANY: Final = frozenset({"Zyyy", "Zinh"})
_OTHER: Final = frozenset({"Other"})
_CONTAINS: Final = {
    "Hani": ("Hani", "Hanb", "Jpan", "Kore"),
    "Hira": ("Hira", "Jpan"),
    "Kana": ("Kana", "Jpan"),
    "Bopo": ("Bopo", "Hanb"),
    "Hang": ("Hang", "Kore"),
}
"""Scripts that are written together count as one: Chinese with Bopomofo, Japanese, Korean."""
_WITH_LATIN: Final = frozenset({"Hanb", "Jpan", "Kore"})
"""Latin letters among these are normal (the "highly restrictive" level)."""
_LIKE_LATIN: Final = frozenset("асԁеԍһіјӏорԗԛѕԝхуьҽпгѵѡΑαικνρυωηοτγւոօսհցզյ")
"""Letters of Cyrillic, Greek and Armenian that look like Latin ones.

A label of these alone deceives without a second script.
"""
_AUTHORITY: Final = re.compile(r"\w+://([^/?#\\]*)")


@lru_cache(maxsize=4_096)
def is_lookalike(host: str) -> bool:
    """Return whether a host, in its ASCII form, has a label that may be taken for another one."""
    labels = host.removesuffix(".").split(".")
    foreign_zone = labels[-1].startswith("xn--")
    return any(
        _is_deceptive(label, foreign_zone=foreign_zone)
        for label in labels
        if label.startswith("xn--")
    )


def to_ascii_url(url: str) -> str:
    """Return a URL for display: with its host in ASCII, and the rest unchanged."""
    found = _AUTHORITY.match(url)
    if found is None or (found[1].isascii() and "%" not in found[1]):
        return url
    try:
        host = parse_web_url(f"https://{found[1]}/").origin.removeprefix("https://")
    except BadUrl:
        host = quote(found[1])  # no link goes there
    return f"{url[: found.start(1)]}{host}{url[found.end(1) :]}"


def _is_deceptive(label: str, *, foreign_zone: bool) -> bool:
    text = _decode_label(label)
    if _has_mixed_scripts(text):
        return True
    letters = {char for char in text if not char.isascii()}
    return bool(letters) and not foreign_zone and letters <= _LIKE_LATIN


def _has_mixed_scripts(text: str) -> bool:
    """Apply the single-script rule of UTS 39 with its highly restrictive combinations."""
    common: frozenset[str] | None = None
    without_latin: frozenset[str] | None = None
    for char in text:
        scripts = _get_scripts(char)
        if scripts & _ANY:
            continue
        common = scripts if common is None else common & scripts
        if "Latn" not in scripts:
            without_latin = scripts if without_latin is None else without_latin & scripts
    return (
        common is not None
        and not common
        and not (without_latin is not None and without_latin & _WITH_LATIN)
    )


@lru_cache(maxsize=4_096)
def _get_scripts(char: str) -> frozenset[str]:
    if char.isascii():
        return frozenset({"Latn"}) if char.isalpha() else _ANY
    number = ord(char)
    found = {
        script
        for script, runs in _load_script_ranges().items()
        if any(first <= number <= last for first, last in runs)
    }
    return (
        frozenset(name for script in found for name in _CONTAINS.get(script, (script,))) or _OTHER
    )


@lru_cache(maxsize=1)
def _load_script_ranges() -> dict[str, list[tuple[int, int]]]:
    table: dict[str, list[tuple[int, int]]] = {}
    for script, text in SCRIPT_RANGES.items():
        words = (word.partition("+") for word in text.split())
        table[script] = [
            (int(first, 16), int(first, 16) + int(more or "0", 16)) for first, _, more in words
        ]
    return table


def _decode_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label.removeprefix("xn--").encode("ascii").decode("punycode")
    except UnicodeError:
        return label  # no browser could have made it
