"""A redirect as bytes: pure, and the same for the fast lane and for everything that answers through ASGI."""

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

STATUSES: Final = (301, 302, 307, 308)
_BROWSER_MAY_KEEP = frozenset({301, 308})
_visible = re.compile(rb"[!-~]+").fullmatch

# The policy is the browsers' own default, spelled out: it decides what the destination learns about the page that
# linked to us, so anything stricter here would rob it of its referrer.
_SHARED: Final = (
    (b"content-length", b"0"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"strict-origin-when-cross-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


def headers(status: int, location: bytes, *, keep: bool = True) -> list[tuple[bytes, bytes]]:
    """Return every header of a redirect but `Date`, which the server adds. Without `keep` no browser keeps it, whatever the status."""
    return [*_own(status, location, keep=keep), *_SHARED]


def head(status: int, location: bytes) -> bytes:
    """What differs from link to link: a cached link keeps these bytes alone, `ending` supplies the rest.

    The location must be a serialised URL; a control character or a space in it is refused, never sent.
    """
    phrase = HTTPStatus(status).phrase.encode()
    return b"HTTP/1.1 %d %b\r\n" % (status, phrase) + _lines(_own(status, location))


def read_head(made: bytes) -> tuple[int, str]:
    """Status and location of what `head` made."""
    line, location, _ = made.split(b"\r\n", 2)
    return int(line[9:12]), location.removeprefix(b"location: ").decode("ascii")


def ending(at: float) -> bytes:
    """What all redirects of one second have in common, up to and including the blank line."""
    return _lines((*_SHARED, (b"date", formatdate(at, usegmt=True).encode()))) + b"\r\n"


def render(status: int, location: bytes, at: float) -> bytes:
    """The whole answer."""
    return head(status, location) + ending(at)


def _own(status: int, location: bytes, *, keep: bool = True) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    if status not in STATUSES:
        raise ValueError(f"{status} is not one of the redirects {STATUSES}")
    if not _visible(location):
        raise ValueError("a location is a serialised URL: visible ASCII alone")
    kept = b"private, max-age=30" if keep and status in _BROWSER_MAY_KEEP else b"private, no-store"
    return (b"location", location), (b"cache-control", kept)


def _lines(pairs: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join(b"%b: %b\r\n" % pair for pair in pairs)
