"""Pages that cannot be fetched, are slow or must not be fetched, and workers that die."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from httpx import AsyncClient
from sqlalchemy import select, update

from refract.core.clock import ManualClock
from refract.core.net.metadata import UnreadablePage
from refract.core.runtime import Runtime
from refract.jobs.models import Job, JobStatus
from refract.jobs.worker import JobWorker
from refract.library.enrichment import page_fetcher
from refract.library.enrichment.page_fetcher import ArticleFetcher
from refract.library.jobs import fail_stuck_items
from refract.library.models import SavedPage
from refract.library.payloads import FailStuckItems
from tests.client import on_sqlite
from tests.library.conftest import Look, Save
from tests.library.http import Answer, Site, page

pytestmark = on_sqlite

TEXT = (
    "Steam engines turn the heat of burning coal into motion, and that motion drove the mills for a"
    " century. " * 3
)


async def _job(rt: Runtime) -> Job:
    async with rt.db.read() as session:
        job = await session.scalar(select(Job).order_by(Job.id.desc()).limit(1))
    assert job is not None
    return job


async def test_what_may_pass_is_tried_three_times(
    rt: Runtime, work: JobWorker, clock: ManualClock, save: Save, look: Look, site: Site
) -> None:
    site.pages["/a"] = 503
    item = await save(site.url("/a"))
    for attempt, pause in ((1, 30), (2, 300)):
        await work.run_due_jobs()
        assert (await look(item)).status == "ENRICHING"
        assert ((await _job(rt)).status, (await _job(rt)).attempt_count) == (
            JobStatus.FAILED,
            attempt,
        )
        assert await work.run_due_jobs() == 0, "not before its time"
        clock.advance(pause)

    await work.run_due_jobs()

    seen = await look(item)
    assert (seen.status, seen.failure, seen.title) == (
        "FAILED",
        "The server responded with an error.",
        None,
    )
    assert len(site.server.asked) == 3


async def test_a_page_that_comes_back_is_described_after_all(
    work: JobWorker, clock: ManualClock, save: Save, look: Look, site: Site
) -> None:
    site.pages["/a"] = 503
    item = await save(site.url("/a"))
    await work.run_due_jobs()
    site.pages["/a"] = page("Engines", TEXT)
    clock.advance(30)

    await work.run_due_jobs()

    assert ((await look(item)).status, (await look(item)).title) == ("READY_TO_CONFIRM", "Engines")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((404, "text/html", b""), "The server responded with an error."),
        (
            (200, "application/pdf", b"%PDF"),
            "The URL isn't a web page.",
        ),
        ((200, "text/html", b"<p>" + b"x" * 3_000_000), "The page is too large."),
    ],
)
async def test_what_will_not_pass_ends_at_once(
    rt: Runtime, work: JobWorker, save: Save, look: Look, site: Site, answer: Answer, why: str
) -> None:
    async def respond(_path: str, _body: bytes) -> Answer:
        return answer

    site.server.respond = respond
    item = await save(site.url("/a"))

    await work.run_due_jobs()

    assert ((await look(item)).status, (await look(item)).failure) == ("FAILED", why)
    assert (await _job(rt)).attempt_count == 1


async def test_an_internal_address_is_never_asked(work: JobWorker, save: Save, look: Look) -> None:
    for text in (
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]:8000/",
    ):
        item = await save(text)
        await work.run_due_jobs()
        assert ((await look(item)).status, (await look(item)).failure) == (
            "FAILED",
            "The page couldn't be reached.",
        )


async def test_a_failed_refetch_overwrites_nothing(
    rt: Runtime, work: JobWorker, save: Save, look: Look, site: Site, as_ada: AsyncClient
) -> None:
    site.pages["/a"] = page("Engines", TEXT)
    item = await save(site.url("/a"))
    await work.run_due_jobs()
    before = await look(item)
    await as_ada.delete(f"/api/v1/items/{item.id}")
    async with rt.db.write() as session:
        await session.execute(update(SavedPage).values(title="kept"))
    site.pages["/a"] = 404

    undone = (await as_ada.post(f"/api/v1/items/{item.id}/undo")).json()

    assert (undone["status"], undone["title"], undone["summary"]) == (
        "READY_TO_CONFIRM",
        before.title,
        before.summary,
    )
    async with rt.db.read() as reading:
        assert await reading.scalar(select(SavedPage.title)) == "kept"


async def test_what_was_read_is_kept(
    rt: Runtime, work: JobWorker, save: Save, look: Look, site: Site
) -> None:
    head = (
        '<meta name="author" content="Ada"><meta property="og:site_name" content="The Mill"><meta'
        ' property="og:image" content="/e.png"><meta property="article:published_time"'
        ' content="2024-03-01T10:00:00+01:00"><link rel="canonical" href="/engines">'
    )
    site.pages.update(
        {"/a": page("Engines", TEXT, head=head, lang="en-GB"), "/engines": page("Engines", TEXT)}
    )
    item = await save(site.url("/a"))
    await work.run_due_jobs()

    async with rt.db.read() as session:
        kept = await session.get_one(SavedPage, item.id)
    assert (kept.author, kept.site, kept.language, kept.image_url) == (
        "Ada",
        "The Mill",
        "en",
        site.url("/e.png"),
    )
    assert kept.published_at is not None
    assert kept.published_at.isoformat() == "2024-03-01T09:00:00+00:00"
    assert (kept.canonical_url, kept.title) == (site.url("/engines"), "Engines")
    assert "burning coal" in kept.text
    assert "cookies" not in kept.text
    assert kept.html.startswith("<")
    assert (await save(site.url("/engines"))).duplicate_of == item.id, (
        "by the page's own word for its address"
    )


async def test_a_page_that_takes_too_long_is_unreadable_and_the_next_is_read(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = rt.singleton(ArticleFetcher)
    monkeypatch.setattr(
        page_fetcher,
        "EXTRACT_ARTICLE_TASK",
        replace(page_fetcher.EXTRACT_ARTICLE_TASK, cpu_seconds=1),
    )
    endless = b"<div>" * 200_000  # Lexbor looks through all open elements for each: minutes of CPU

    with pytest.raises(UnreadablePage, match="couldn't be read"):
        await reader.extract_article(endless, "https://example.com/", None, 1)

    monkeypatch.undo()
    pages = (
        reader.extract_article(page(f"Part {part}", TEXT).encode(), "https://example.com/", None, 1)
        for part in range(3)
    )
    assert [found.title for found in await asyncio.gather(*pages)] == ["Part 0", "Part 1", "Part 2"]


async def test_an_item_whose_job_died_says_so(
    rt: Runtime, save: Save, look: Look, as_ada: AsyncClient, tmp_path: Path
) -> None:
    item = await save("A thought.")
    async with rt.db.write() as session:
        await session.execute(update(Job).values(status=JobStatus.DEAD, finished_at=rt.clock.now()))

    await fail_stuck_items(rt, FailStuckItems())

    assert ((await look(item)).status, (await look(item)).failure) == (
        "FAILED",
        "Processing stopped unexpectedly. Try again.",
    )
    assert (await as_ada.post(f"/api/v1/items/{item.id}/retry")).json()["status"] == "ENRICHING"
