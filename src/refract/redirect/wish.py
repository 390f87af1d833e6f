"""What a path outside our own pages asks for: pure."""

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, unquote

from refract.links.golinks import split_extra
from refract.names.grammar import FORGIVEN

FEEDS = ("rss", "json", "md")


class View(StrEnum):
    """What is wanted of a link or a list."""

    FOLLOW = "follow"
    PREVIEW = "preview"
    QR = "qr"
    FEED = "feed"
    CARD = "card"


@dataclass(frozen=True, slots=True)
class Wish:
    """A path taken apart. `name` is decoded; `extra` is the rest of the path as it was sent."""

    name: str
    view: View = View.FOLLOW
    feed: str = ""
    extra: str = ""
    query: str = ""

    @property
    def segments(self) -> list[str]:
        return split_extra(self.extra)

    @property
    def shown(self) -> str:
        """The name as it may stand in a sentence."""
        return self.name.encode("utf-8", "replace").decode()[:100]


def read_wish(raw_path: bytes, query: bytes = b"") -> Wish:
    """`/name`, `/name/extra`, `/name+`, `/name.qr`, `/name.rss`, `/name.png`. Bytes that are no UTF-8 survive, and then name nothing."""
    first, _, extra = _text(raw_path).removeprefix("/").partition("/")
    name = unquote(first, errors="surrogateescape")
    asked = _text(query)
    if name.endswith("+"):
        return Wish(name[:-1], View.PREVIEW, extra=extra, query=asked)
    stem, dot, suffix = name.rpartition(".")
    if dot and suffix.lower() == "qr":
        return Wish(stem, View.QR, extra=extra, query=asked)
    if dot and suffix.lower() in FEEDS:
        return Wish(stem, View.FEED, feed=suffix.lower(), extra=extra, query=asked)
    if dot and suffix.lower() == "png":
        return Wish(stem, View.CARD, extra=extra, query=asked)
    return Wish(name, extra=extra, query=asked)


def raw_path_of(scope_path: str, raw_path: bytes | None) -> bytes:
    """The path as sent; servers that do not tell give the decoded one, which is encoded again."""
    return raw_path if raw_path is not None else quote(scope_path).encode()


def forgiven(name: str) -> str | None:
    """The name without what a sentence left behind it; None when there was nothing to forgive."""
    bare = name.rstrip(FORGIVEN)
    return bare if bare and bare != name else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
