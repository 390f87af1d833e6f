"""The saved text of an item for the reader, sanitised again on its way out."""

import html
import math
import re
from dataclasses import dataclass
from datetime import datetime

import nh3

from refract.library.models import Item, SavedPage

_TAGS = {
    "a",
    "abbr",
    "b",
    "blockquote",
    "br",
    "caption",
    "cite",
    "code",
    "dd",
    "del",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "small",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
    "var",
}
_REMOVED_TAGS = {
    "script",
    "style",
    "template",
    "noscript",
    "title",
    "textarea",
    "svg",
    "math",
    "iframe",
    "object",
}
_WORDS_PER_MINUTE = 230
"""Reading speed; for scripts without spaces, twice as many characters."""
_WORDS = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)


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


def sanitize_html(markup: str) -> str:
    """Return structured text in which nothing runs, loads, frames or styles.

    Links send no referrer.
    """
    return nh3.clean(
        markup,
        tags=_TAGS,
        clean_content_tags=_REMOVED_TAGS,
        attributes={
            "a": {"href"},
            "ol": {"start"},
            "td": {"colspan", "rowspan"},
            "th": {"colspan", "rowspan"},
        },
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )


def text_to_html(text: str) -> str:
    """Return plain text as HTML: an empty line begins a paragraph, a line break stays one."""
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return "".join(f"<p>{html.escape(part).replace(chr(10), '<br>')}</p>" for part in parts if part)
