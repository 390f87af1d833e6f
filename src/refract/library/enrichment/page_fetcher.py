"""Articles: fetched by the guarded fetcher, parsed in an extraction process."""

import json
from datetime import datetime
from typing import Any

from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import ExtractionBusy, ExtractionError, ExtractionTask
from refract.core.net import PageFetcher
from refract.core.net.metadata import UnreadablePage
from refract.core.runtime import Runtime
from refract.library.enrichment.types import ExtractedPage

FETCH_TIMEOUT = 10.0
EXTRACT_ARTICLE_TASK = ExtractionTask(
    "article",
    "refract.library.enrichment.extractor:extract_article",
    cpu_seconds=10,
    wall_seconds=30.0,
    max_output=8 * 1024 * 1024,
    slow=True,
)


class ArticleFetcher:
    """Fetches articles and extracts their text. One per process."""

    def __init__(self, rt: Runtime) -> None:
        self._fetcher = PageFetcher.from_settings(rt.settings)
        self._pool = rt.singleton(ExtractionPool)

    async def fetch_article(self, url: str, user_id: int) -> ExtractedPage:
        """Return the page at a URL. Raises `FetchError`."""
        page = await self._fetcher.fetch(url, budget=FETCH_TIMEOUT)
        return await self.extract_article(page.body, page.url, page.charset, user_id)

    async def extract_article(
        self, body: bytes, url: str, charset: str | None, user_id: int
    ) -> ExtractedPage:
        """Parse HTML. Raises `UnreadablePage` if a page takes too much time or memory."""
        try:
            pieces = await self._pool.run(
                EXTRACT_ARTICLE_TASK, body, owner=str(user_id), url=url, charset=charset
            )
        except ExtractionError as exc:
            raise UnreadablePage(
                f"{url}: {exc.outcome}", is_transient=isinstance(exc, ExtractionBusy)
            ) from exc
        return _parse_extracted_page(json.loads(pieces[0]), b"".join(pieces[1:]))


def _parse_extracted_page(fields: dict[str, Any], texts: bytes) -> ExtractedPage:
    """Return a page from its parts.

    Text and HTML are not part of the JSON: parsing them would take the event loop longer than all
    else.
    """
    size = fields.pop("text_size")
    published = fields.pop("published_at")
    return ExtractedPage(
        **{**fields, "keywords": tuple(fields["keywords"])},
        published_at=datetime.fromisoformat(published) if published else None,
        text=texts[:size].decode(),
        html=texts[size:].decode(),
    )
