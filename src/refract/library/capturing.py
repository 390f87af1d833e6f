"""What a captured text is: an address or a thought, and whether it is here already."""

import hashlib
from dataclasses import dataclass

from refract.core.urls import BadUrl, WebUrl, normalise, parse_web_url
from refract.library.models import ItemType

LONGEST_LINE = 60


@dataclass(frozen=True, slots=True)
class Recognised:
    """A text, understood."""

    type: ItemType
    url: str | None = None
    url_digest: str | None = None
    site: str | None = None


def recognise(text: str) -> Recognised:
    """Text that is exactly one address is an article, anything else a note."""
    url = _only_address(text)
    if url is None:
        return Recognised(ItemType.NOTE)
    return Recognised(ItemType.ARTICLE, text.strip(), digest_of(url), site_of(url))


def _only_address(text: str) -> WebUrl | None:
    word = text.strip()
    if not word.lower().startswith(("http://", "https://")) or any(character.isspace() for character in word):
        return None
    try:
        return parse_web_url(word)
    except BadUrl:
        return None


def digest_of(url: WebUrl) -> str:
    """Two addresses with one digest are taken for the same page; the scheme and a leading `www.` make no difference to that."""
    same = normalise(url).split("://", 1)[1].removeprefix("www.")
    return hashlib.blake2b(same.encode(), digest_size=16).hexdigest()


def site_of(url: WebUrl) -> str:
    return url.host.removeprefix("www.")[:255]


def first_line(text: str, most: int = LONGEST_LINE) -> str:
    """The first line with something in it, cut to fit: the title of what nobody has given one."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def split(paste: str) -> list[str]:
    """A paste of nothing but addresses, one a line, is as many texts; anything else is one."""
    lines = [line.strip() for line in paste.splitlines() if line.strip()]
    if len(lines) > 1 and all(_only_address(line) for line in lines):
        return list(dict.fromkeys(lines))
    return [paste] if paste.strip() else []
