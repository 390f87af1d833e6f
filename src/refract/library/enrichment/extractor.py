"""Metadata and readable text of a page. Heavy: imported by the extraction process only."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin

import nh3
import trafilatura
from selectolax.lexbor import LexborHTMLParser

from refract.core.net.charset import decode_html
from refract.core.urls import BadUrl, parse_web_url
from refract.library.enrichment.types import ExtractedPage

MAX_HTML_LENGTH = 3_000_000
MAX_TEXT_LENGTH = 400_000
MAX_KEYWORDS = 12
_TAGS = {
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "b",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
}
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    r"\u200b\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_BLOCK = re.compile(r"</(?:p|h[1-6]|li|blockquote|pre|tr|table|ul|ol)>|<(?:br|hr) ?/?>")


def extract_article(body: bytes, *, url: str, charset: str | None) -> Iterator[bytes]:
    """Yield the fields of a page as JSON, then its text and its HTML as they are."""
    fields = asdict(extract_page(decode_html(body, charset)[:MAX_HTML_LENGTH], url))
    text, html = (fields.pop(name).encode("utf-8", "replace") for name in ("text", "html"))
    published = fields["published_at"]
    fields |= {"published_at": published.isoformat() if published else None, "text_size": len(text)}
    yield json.dumps(fields).encode()
    yield text
    yield html


def extract_page(html: str, url: str) -> ExtractedPage:
    """Return the metadata and text of a page.

    Fields that are missing or make no sense are empty.
    """
    tree = LexborHTMLParser(html)
    metas = dict(reversed(list(_iter_metas(tree))))  # the first of several wins
    stated = _find_json_ld(tree)
    readable = _extract_readable(html, url)
    return ExtractedPage(
        url=url,
        canonical_url=_resolve_url(url, _find_canonical(tree) or metas.get("og:url")),
        title=_clean_line(
            metas.get("og:title") or stated.get("headline") or _find_title(tree), 255
        ),
        description=_clean_line(
            metas.get("description") or metas.get("og:description") or stated.get("description"),
            2000,
        ),
        author=_clean_line(
            metas.get("author") or _get_name(stated.get("author")) or metas.get("article:author"),
            255,
        ),
        site=_clean_line(metas.get("og:site_name") or _get_name(stated.get("publisher")), 255),
        language=_find_language(tree, metas),
        published_at=_parse_time(
            metas.get("article:published_time") or stated.get("datePublished") or metas.get("date")
        ),
        image_url=_resolve_url(url, metas.get("og:image") or metas.get("twitter:image")),
        keywords=_collect_keywords(tree, metas, stated),
        text=html_to_text(readable)[:MAX_TEXT_LENGTH],
        html=readable,
    )


def _extract_readable(html: str, url: str) -> str:
    """Return the article of a page as harmless HTML, or "" if there is none."""
    found = trafilatura.extract(
        html,
        url=url,
        output_format="html",
        include_comments=False,
        include_formatting=True,
        include_links=True,
        include_tables=True,
    )
    return sanitize_extracted_html(found or "")


def sanitize_extracted_html(html: str) -> str:
    """Return text in paragraphs in which nothing runs, loads or frames. Links send no referrer."""
    clean = nh3.clean(
        _CONTROL.sub("", html)[: MAX_TEXT_LENGTH * 2],
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes={"a": {"href"}},
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
    )
    return clean.strip()


def html_to_text(html: str) -> str:
    """Return the text of sanitised HTML, with an empty line between paragraphs."""
    tree = LexborHTMLParser(_BLOCK.sub("\n\n", html))
    text = tree.body.text() if tree.body is not None else ""
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(part for part in paragraphs if part)


def _iter_metas(tree: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    for node in tree.css("meta"):
        name = (
            (node.attributes.get("property") or node.attributes.get("name") or "").strip().lower()
        )
        content = node.attributes.get("content")
        if name and content and content.strip():
            yield name, content


def _find_json_ld(tree: LexborHTMLParser) -> dict[str, Any]:
    """Return the JSON-LD object of the first article on a page."""
    for node in tree.css('script[type="application/ld+json"]')[:10]:
        try:
            value = json.loads(node.text()[:100_000])
        except (ValueError, RecursionError):
            continue
        for candidate in _iter_objects(value):
            kind = candidate.get("@type")
            if any(
                str(name).endswith(("Article", "Posting", "WebPage", "Report"))
                for name in (kind if isinstance(kind, list) else [kind])
            ):
                return {
                    name: inner
                    for name, inner in candidate.items()
                    if isinstance(inner, str | list | dict)
                }
    return {}


def _iter_objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        yield from _iter_objects(value.get("@graph"))
    elif isinstance(value, list):
        for member in value[:50]:
            yield from _iter_objects(member)


def _get_name(value: Any) -> str | None:
    if isinstance(value, list):
        value = value[0] if value else None
    return (
        value.get("name")
        if isinstance(value, dict) and isinstance(value.get("name"), str)
        else value
        if isinstance(value, str)
        else None
    )


def _find_title(tree: LexborHTMLParser) -> str | None:
    for selector in ("title", "h1"):
        node = tree.css_first(selector)
        if node is not None and node.text().strip():
            return str(node.text())
    return None


def _find_canonical(tree: LexborHTMLParser) -> str | None:
    node = tree.css_first('link[rel="canonical"]')
    return node.attributes.get("href") if node is not None else None


def _find_language(tree: LexborHTMLParser, metas: dict[str, str]) -> str | None:
    stated = (
        (tree.root.attributes.get("lang") if tree.root is not None else None)
        or metas.get("og:locale")
        or metas.get("language")
        or ""
    )
    found = re.match(r"[a-zA-Z]{2,3}(?![a-zA-Z])", stated.strip())
    return found[0].lower() if found else None


def _collect_keywords(
    tree: LexborHTMLParser, metas: dict[str, str], stated: dict[str, Any]
) -> tuple[str, ...]:
    """Return the tags that the page's author gave it, most specific first."""
    found = [
        node.attributes.get("content") or "" for node in tree.css('meta[property="article:tag"]')
    ]
    listed = stated.get("keywords")
    found += (
        [str(word) for word in listed] if isinstance(listed, list) else str(listed or "").split(",")
    )
    found += re.split(r"[,;、，]", metas.get("keywords") or "")
    clean = (_clean_line(word, 60) for word in found)
    return tuple(dict.fromkeys(word for word in clean if word and len(word) <= 50))[:MAX_KEYWORDS]


def _clean_line(value: Any, max_length: int) -> str | None:
    """Return one line of plain text, shortened. Markup in it has no meaning."""
    if not isinstance(value, str):
        return None
    text = " ".join(_CONTROL.sub("", value).split())
    if len(text) > max_length:
        text = f"{text[: max_length - 1].rstrip()}…"
    return text or None


def _resolve_url(base: str, reference: str | None) -> str | None:
    if not reference:
        return None
    try:
        return parse_web_url(urljoin(base, reference.strip())).href
    except (BadUrl, ValueError):
        return None


def _parse_time(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value.strip())
        read = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return read if 1990 <= read.year <= 2100 else None
