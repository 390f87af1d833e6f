"""The saved text of an item for the reader, sanitised again on its way out."""

import html
import math
import re
from dataclasses import dataclass
from datetime import datetime

from refract.library.models import Item, SavedPage
from refract.library.sanitizer import sanitize_html

_WORDS_PER_MINUTE = 230
"""Reading speed; for scripts without spaces, twice as many characters."""
_WORDS = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)

_FIRST_HEADING = re.compile(r"\s*<h([1-6])[^>]*>(.*?)</h\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class ReaderView:
    """An item to read."""

    title: str | None
    author: str | None
    site: str | None
    url: str | None
    language: str | None
    published_at: datetime | None
    html: str
    words: int
    minutes: int


def build_reader_view(item: Item, page: SavedPage | None) -> ReaderView:
    """Return the saved page for the reader, or the captured text if there is none."""
    body = (
        sanitize_html(page.html)
        if page is not None and page.html.strip()
        else text_to_html(page.text if page is not None else item.text)
    )
    words = len(_WORDS.findall(page.text if page is not None else item.text))
    return ReaderView(
        title=item.title or (page.title if page else None),
        author=page.author if page else None,
        site=(page.site if page else None) or item.site,
        url=item.url,
        language=page.language if page else None,
        published_at=page.published_at if page else None,
        html=body,
        words=words,
        minutes=max(1, math.ceil(words / _WORDS_PER_MINUTE)),
    )


def strip_title(body: str, title: str | None) -> str:
    """Return a sanitised page without its first heading, if that repeats the title above it."""
    match = _FIRST_HEADING.match(body)
    if match is None or title is None:
        return body
    heading = html.unescape(_TAG.sub("", match[2]))
    return body[match.end() :] if _fold(heading) == _fold(title) else body


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def text_to_html(text: str) -> str:
    """Return plain text as HTML: an empty line begins a paragraph, a line break stays one."""
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return "".join(f"<p>{html.escape(part).replace(chr(10), '<br>')}</p>" for part in parts if part)
