"""Articles: fetched by the one door to foreign hosts, read in an extraction process."""

import json
from datetime import datetime
from typing import Any

from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import ExtractionBusy, ExtractionError, ExtractionTask
from refract.core.net import Fetcher
from refract.core.net.metadata import UnreadablePage
from refract.core.runtime import Runtime
from refract.library.enrich.material import Extracted

FETCH_SECONDS = 10.0
READ_ARTICLE = ExtractionTask(
    "article", "refract.library.extract:read_article", cpu_seconds=10, wall_seconds=30.0, max_output=8 * 1024 * 1024, slow=True
)


class ArticleReader:
    """Fetches articles and has them read. One per process."""

    def __init__(self, rt: Runtime) -> None:
        self._fetcher = Fetcher.from_settings(rt.settings)
        self._pool = rt.part(ExtractionPool)

    async def read(self, url: str, user_id: int) -> Extracted:
        """Return the page at this address; raises the `FetchError` that says why not."""
        page = await self._fetcher.fetch(url, budget=FETCH_SECONDS)
        return await self.extract(page.body, page.url, page.charset, user_id)

    async def extract(self, body: bytes, url: str, charset: str | None, user_id: int) -> Extracted:
        """Read HTML; raises `UnreadablePage` about a page that takes too much time or memory."""
        try:
            pieces = await self._pool.run(READ_ARTICLE, body, owner=str(user_id), url=url, charset=charset)
        except ExtractionError as exc:
            raise UnreadablePage(f"{url}: {exc.outcome}", again=isinstance(exc, ExtractionBusy)) from exc
        return _as_extracted(json.loads(pieces[0]), b"".join(pieces[1:]))


def _as_extracted(fields: dict[str, Any], texts: bytes) -> Extracted:
    """Text and HTML follow the fields as they are: as JSON they would take the loop longer to read than anything else here."""
    size = fields.pop("text_size")
    published = fields.pop("published_at")
    return Extracted(
        **{**fields, "keywords": tuple(fields["keywords"])},
        published_at=datetime.fromisoformat(published) if published else None,
        text=texts[:size].decode(),
        html=texts[size:].decode(),
    )
