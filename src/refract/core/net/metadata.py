"""Title, description and image of a foreign page, read in an extraction process."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import (
    ExtractionBusy,
    ExtractionError,
    ExtractionTask,
    TaskRefused,
)
from refract.core.net.charset import decode_html
from refract.core.net.errors import FetchError
from refract.core.net.fetcher import FetchedPage, PageFetcher
from refract.core.net.html_head import PageTooDeep, TooManyAttributes, parse_head

MAX_TITLE = 200
MAX_DESCRIPTION = 500
MAX_IMAGE = 2048
MAX_FETCHED_BYTES = 512 * 1024
"""Bytes of a page that are fetched for its head.

Large sites have half a megabyte of script in theirs.
"""

READ_METADATA_TASK = ExtractionTask(
    "metadata",
    "refract.core.net.metadata:extract_page_metadata",
    cpu_seconds=2,
    wall_seconds=20.0,
    max_output=64 * 1024,
)
_BLANKS = re.compile(r"\s+")
_JOINERS = "\u200c\u200d"  # invisible, but emoji and many scripts need them


class UnreadablePage(FetchError):
    """The page couldn't be read."""

    kind = "unreadable"

    def __init__(self, detail: str = "", *, is_transient: bool = False) -> None:
        super().__init__(detail)
        self.is_transient = is_transient


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """The metadata of a page as text that can be stored."""

    title: str | None = None
    description: str | None = None
    image: str | None = None


async def fetch_metadata(
    fetcher: PageFetcher, pool: ExtractionPool, url: str, *, owner: str, budget: float
) -> PageMetadata:
    """Fetch the beginning of a page and return its metadata; raises `FetchError`."""
    page = await fetcher.fetch(url, budget=budget, truncate_at=MAX_FETCHED_BYTES)
    try:
        pieces = await pool.run(
            READ_METADATA_TASK,
            page.body,
            owner=owner,
            url=page.url,
            charset=page.charset,
            whole=not page.truncated,
        )
    except ExtractionError as exc:
        raise UnreadablePage(
            f"{url}: {exc.outcome}", is_transient=isinstance(exc, ExtractionBusy)
        ) from exc
    return PageMetadata(**json.loads(b"".join(pieces)))


def extract_page_metadata(body: bytes, *, url: str, charset: str | None, whole: bool) -> bytes:
    """Return the metadata of a page as JSON. Runs in the extraction process."""
    page = FetchedPage(url, 200, {}, b"")

    def join(reference: str) -> str | None:
        try:
            return page.resolve_url(reference)
        except FetchError:
            return None

    try:
        found = parse_metadata(decode_html(body, charset, whole=whole), join)
    except (PageTooDeep, TooManyAttributes) as exc:
        raise TaskRefused(type(exc).__name__) from exc
    return json.dumps(asdict(found)).encode()


def parse_metadata(html: str, join: Callable[[str], str | None]) -> PageMetadata:
    """Parse the head of a page.

    `join` resolves a reference, or returns None if it is invalid. Metadata for previews takes
    precedence over the plain title.
    """
    head = parse_head(html)
    offered: dict[str, str] = {}
    for name, content in _iter_named_metas(head.metas):
        offered.setdefault(name, content)
    title = offered.get("og:title") or head.title or offered.get("twitter:title")
    description = (
        offered.get("og:description")
        or offered.get("description")
        or offered.get("twitter:description")
    )
    picture = offered.get("og:image") or offered.get("og:image:url") or offered.get("twitter:image")
    image = join(picture.strip()) if picture else None
    return PageMetadata(
        clean_line(title, MAX_TITLE),
        clean_line(description, MAX_DESCRIPTION),
        image if image and len(image) <= MAX_IMAGE else None,
    )


def _iter_named_metas(metas: list[dict[str, str]]) -> Iterator[tuple[str, str]]:
    for attributes in metas:
        name = (attributes.get("property") or attributes.get("name") or "").strip().lower()
        content = attributes.get("content", "")
        if name and content.strip():
            yield name, content


def clean_line(text: str | None, max_length: int) -> str | None:
    """Return one line without invisible characters, cut at a word if too long; None if empty."""
    if text is None:
        return None
    visible = "".join(
        character
        for character in text
        if character.isspace()
        or character in _JOINERS
        or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )
    line = _BLANKS.sub(" ", visible).strip()
    if len(line) > max_length:
        cut = line[: max_length - 1]
        line = f"{cut[: cut.rfind(' ')] if ' ' in cut[max_length // 2 :] else cut}…"
    return line or None
