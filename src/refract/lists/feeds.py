"""Published lists as RSS 2.0, JSON Feed 1.1 and Markdown. Pure.

Feeds contain the destinations, so that saved copies still work when the list is deleted.
"""

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC
from email.utils import format_datetime
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from refract.lists.schemas import PublicEntry, PublicList

NO_TITLE = "(No title)"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def render_rss(found: PublicList, base_url: str) -> str:
    """Return an RSS feed with one item per entry, in the list's order."""
    address, self_address = found.url, _build_feed_url(found, "rss", base_url)
    published = format_datetime(found.published_at.astimezone(UTC), usegmt=True)
    items = "".join(_render_rss_item(found, entry) for entry in found.entries)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
        f"<title>{_escape_xml(get_title(found))}</title><link>{_escape_xml(address)}</link>"
        f"<description>{_escape_xml(found.description or get_title(found))}</description>"
        f'<atom:link href={quoteattr(self_address)} rel="self" type="application/rss+xml"/>'
        f"<lastBuildDate>{published}</lastBuildDate>"
        f"<generator>Refract</generator>{items}</channel></rss>\n"
    )


def _render_rss_item(found: PublicList, entry: PublicEntry) -> str:
    about = (
        f"<description>{_escape_xml(entry.description)}</description>" if entry.description else ""
    )
    section = f"<category>{_escape_xml(entry.section)}</category>" if entry.section else ""
    published = format_datetime(found.published_at.astimezone(UTC), usegmt=True)
    return (
        f"<item><title>{_escape_xml(entry.title or NO_TITLE)}</title>"
        f"<link>{_escape_xml(entry.url)}</link>{about}{section}"
        f'<guid isPermaLink="false">{_escape_xml(_build_item_id(found, entry))}</guid>'
        f"<pubDate>{published}</pubDate></item>"
    )


def render_json_feed(found: PublicList, base_url: str) -> str:
    items = [
        {
            "id": _build_item_id(found, entry),
            "url": entry.url,
            "title": entry.title or NO_TITLE,
            "content_text": entry.description or entry.title or entry.url,
            **({"image": entry.image} if entry.image else {}),
            **({"tags": [entry.section]} if entry.section else {}),
            "date_published": found.published_at.isoformat(),
        }
        for entry in found.entries
    ]
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": get_title(found),
        "home_page_url": found.url,
        "feed_url": _build_feed_url(found, "json", base_url),
        **({"description": found.description} if found.description else {}),
        **({"authors": [{"name": found.author}]} if found.author else {}),
        "items": items,
    }
    return json.dumps(feed, ensure_ascii=False, indent=1)


def render_markdown(found: PublicList, base_url: str) -> str:  # noqa: ARG001 - a FeedRenderer
    parts = [f"# {_escape_markdown(get_title(found))}"]
    if found.description:
        parts.append(_escape_markdown(found.description))
    numbered = enumerate(found.entries, 1)
    for section, entries in groupby(numbered, key=lambda pair: pair[1].section):
        if section is not None:
            parts.append(f"## {_escape_markdown(section)}")
        parts.append("\n".join(_render_markdown_line(*pair) for pair in entries))
    parts.append(f"<{found.url}>")
    return "\n\n".join(parts) + "\n"


def _render_markdown_line(number: int, entry: PublicEntry) -> str:
    about = f" – {_escape_markdown(entry.description)}" if entry.description else ""
    address = entry.url.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
    return f"{number}. [{_escape_markdown(entry.title or NO_TITLE)}](<{address}>){about}"


FeedRenderer = Callable[[PublicList, str], str]
FEEDS: dict[str, tuple[FeedRenderer, str]] = {
    "rss": (render_rss, "application/rss+xml"),
    "json": (render_json_feed, "application/feed+json"),
    "md": (render_markdown, "text/markdown"),
}


def get_title(found: PublicList) -> str:
    return found.title or found.slug


def join_addresses(found: Sequence[PublicEntry]) -> str:
    """Return the URLs of all entries, one per line."""
    return "\n".join(entry.url for entry in found)


def _build_feed_url(found: PublicList, kind: str, base_url: str) -> str:
    query = "" if found.edition == found.latest_edition else f"?edition={found.edition}"
    return f"{base_url}/{found.slug}.{kind}{query}"


def _build_item_id(found: PublicList, entry: PublicEntry) -> str:
    """Return the id of a feed item. It is stable for an edition."""
    return f"{found.url.partition('?')[0]}/{entry.position}?edition={found.edition}"


def _escape_xml(text: str) -> str:
    return escape(_NOT_XML.sub("", text))


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
