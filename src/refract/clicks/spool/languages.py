"""The preferred language of a visitor, as the frame of a click has it."""

import re
from functools import lru_cache
from typing import Final

MAX_HEADER_BYTES: Final = 100
"""Bytes of an Accept-Language header that are read."""
MAX_CACHED_HEADERS: Final = 1024
PARAMETER: Final = b"language="
_match_choice = re.compile(
    rb"[ \t]*([A-Za-z]{2,3})(?:-[A-Za-z0-9]+)*[ \t]*"
    rb"(?:;[ \t]*q=(1(?:\.0{0,3})?|0(?:\.[0-9]{0,3})?)[ \t]*)?"
).fullmatch


def encode_language(header: bytes) -> bytes:
    """Return what a click says about the language in an Accept-Language header; maybe nothing.

    Only the preferred language itself is kept, such as `de` of `de-CH,fr;q=0.9`: its region, its
    script and the other languages would help to tell people apart.
    """
    if len(header) > MAX_HEADER_BYTES:
        header = header[:MAX_HEADER_BYTES]
    return _encode_language(header)


@lru_cache(maxsize=MAX_CACHED_HEADERS)
def _encode_language(header: bytes) -> bytes:
    choices = header.split(b",")
    if len(header) == MAX_HEADER_BYTES:
        choices.pop()  # it may have been cut
    preferred, highest = b"", 0.0
    for choice in choices:
        found = _match_choice(choice)
        if found is not None and (quality := float(found[2] or 1)) > highest:
            preferred, highest = found[1], quality
    return PARAMETER + preferred.lower() if preferred else b""


def extract_language(campaign: bytes) -> str | None:
    """Return the language of a click, or None if it says nothing about it.

    It is before the parameters of the query.
    """
    for part in (b"&" + campaign).partition(b"&utm_")[0].split(b"&"):
        if part.startswith(PARAMETER):
            return part[len(PARAMETER) :].decode()
    return None
