"""Detection of prefetches and of Do-Not-Track/GPC from request headers."""

from collections.abc import Mapping
from typing import Final

from refract.clicks.spool.format import PREFETCH, PRIVATE

FLAG_HEADERS: Final = frozenset(
    {b"sec-purpose", b"purpose", b"x-purpose", b"x-moz", b"sec-gpc", b"dnt"}
)
_PREFETCH_WORDS = (b"prefetch", b"prerender", b"preview")


def parse_flags(headers: Mapping[bytes, bytes]) -> int:
    """Return the flags of a click from its headers, given by lower-case name."""
    flags = 0
    for name in (b"sec-purpose", b"purpose", b"x-purpose", b"x-moz"):
        value = headers.get(name, b"").lower()
        if value and any(word in value for word in _PREFETCH_WORDS):
            flags |= PREFETCH
    if headers.get(b"sec-gpc", b"").strip() == b"1" or headers.get(b"dnt", b"").strip() == b"1":
        flags |= PRIVATE
    return flags
