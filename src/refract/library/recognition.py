"""What a captured text is: a URL or a note, and whether it is a duplicate."""

import hashlib
from dataclasses import dataclass

from refract.core.urls import BadUrl, WebUrl, normalize_url, parse_web_url
from refract.library.models import ItemType

MAX_LINE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class RecognisedText:
    """A text with its type, and its URL if it is one."""

    type: ItemType
    url: str | None = None
    url_digest: str | None = None
    site: str | None = None


def recognize_text(text: str) -> RecognisedText:
    """Return the type of a text: exactly one URL is an article, anything else a note."""
    url = _parse_single_url(text)
    if url is None:
        return RecognisedText(ItemType.NOTE)
    return RecognisedText(ItemType.ARTICLE, text.strip(), compute_url_digest(url), get_site(url))


def _parse_single_url(text: str) -> WebUrl | None:
    word = text.strip()
    if not word.lower().startswith(("http://", "https://")) or any(
        character.isspace() for character in word
    ):
        return None
    try:
        return parse_web_url(word)
    except BadUrl:
        return None


def compute_url_digest(url: WebUrl) -> str:
    """Return the digest by which duplicates are found.

    The scheme and a leading `www.` do not affect it.
    """
    same = normalize_url(url).split("://", 1)[1].removeprefix("www.")
    return hashlib.blake2b(same.encode(), digest_size=16).hexdigest()


def get_site(url: WebUrl) -> str:
    return url.host.removeprefix("www.")[:255]


def extract_first_line(text: str, max_length: int = MAX_LINE_LENGTH) -> str:
    """Return the first line that is not blank, shortened: the title of an item without one."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= max_length else f"{line[: max_length - 1].rstrip()}…"


def split_paste(paste: str) -> list[str]:
    """Split a paste that has nothing but URLs, one per line; return any other text as it is."""
    lines = [line.strip() for line in paste.splitlines() if line.strip()]
    if len(lines) > 1 and all(_parse_single_url(line) for line in lines):
        return list(dict.fromkeys(lines))
    return [paste] if paste.strip() else []
