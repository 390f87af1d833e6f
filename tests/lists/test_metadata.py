"""Page metadata, fetched in the background.

Every fetch ends as success or failure, the entry stays, and edits by users win.
"""

import asyncio
from pathlib import Path

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.net.metadata import MAX_TITLE, PageMetadata, clean_line, parse_metadata
from refract.core.runtime import Runtime
from refract.jobs.models import Job
from refract.lists import entry_jobs, service
from refract.lists.access import ListCaller
from refract.lists.entry_jobs import FetchEntry, fetch_entry
from refract.lists.models import ListEntry
from refract.lists.schemas import EntryPatch
from tests import make
from tests.client import on_sqlite
from tests.conftest import make_settings
from tests.fetching import settings, web
from tests.lists.clients import creator, new_list, read
from tests.lists.pages_server import Site, held, huge, page, redirect, silence
from tests.waiting import PATIENCE

__all__ = ["settings", "web"]

WHO = ListCaller(creator="x" * 64)


async def _add(rt: Runtime, *urls: str) -> list[int]:
    async with rt.db.write() as session:
        made = await make.list_of(session, rt, WHO, *urls)
        return list(
            await session.scalars(
                select(ListEntry.id)
                .where(ListEntry.list_id == made.id)
                .order_by(ListEntry.position)
            )
        )


async def _entry(rt: Runtime, entry_id: int) -> ListEntry:
    async with rt.db.read() as session:
        return await session.get_one(ListEntry, entry_id)


GOOD = {
    "/entities": (
        page(
            b"<title>Tom &amp; Jerry&#8217;s &lt;b&gt;</title>"
            b"<meta name=description content='A &quot;b&quot;'>"
        ),
        ("Tom & Jerry’s <b>", 'A "b"'),
    ),
    "/latin": (
        page("<title>Käse</title>".encode("latin-1"), kind="text/html; charset=iso-8859-1"),
        ("Käse", None),
    ),
    "/meta": (
        page(
            '<meta charset="shift_jis"><title>読書会</title>'.encode("shift_jis"), kind="text/html"
        ),
        ("読書会", None),
    ),
    "/koi8": (
        page("<title>Привет</title>".encode("koi8-r"), kind="text/html; charset=KOI8-R"),
        ("Привет", None),
    ),
    "/og": (
        page(
            b'<title>Plain</title><meta property="og:title" content="Shown">'
            b'<meta property="og:description" content="About">'
        ),
        ("Shown", "About"),
    ),
    "/bare": (page(b"<p>no head at all"), (None, None)),
    "/empty": (page(b""), (None, None)),
    "/blank": (page(b"<title>  \n </title>"), (None, None)),
    "/lines": (page(b"<title>\n  Two\n\t lines  </title>"), ("Two lines", None)),
    "/hop": (redirect("/og"), ("Shown", "About")),
    "/huge": (huge, ("Huge", None)),
}
BAD = {
    "/404": page(b"<title>Not here</title>", status="404 Not Found"),
    "/500": page(b"<title>Broken</title>", status="500 Oops"),
    "/pdf": page(b"%PDF-1.7", kind="application/pdf"),
    "/inside": redirect("http://10.0.0.1/"),
    "/metadata": redirect("http://169.254.169.254/latest/meta-data/"),
    "/round": redirect("/round"),
    "/gzip": page(b"not gzip", more="Content-Encoding: gzip\r\n"),
}


@on_sqlite
async def test_every_page_ends_as_success_or_failure(rt: Runtime, web: Site) -> None:
    web.pages = {path: answer for path, (answer, _) in GOOD.items()} | BAD
    paths = [*GOOD, *BAD, "/gone"]
    entries = dict(zip(paths, await _add(rt, *(web.url(path) for path in paths)), strict=True))

    async with asyncio.timeout(PATIENCE):
        for entry_id in entries.values():
            await fetch_entry(rt, FetchEntry(entry_id=entry_id))

    for path, entry_id in entries.items():
        entry = await _entry(rt, entry_id)
        if path in GOOD:
            assert (entry.fetch_status, (entry.title, entry.description)) == (
                "success",
                GOOD[path][1],
            ), path
        else:
            assert (entry.fetch_status, entry.title, entry.description) == (
                "failed",
                None,
                None,
            ), path


@on_sqlite
async def test_a_page_that_never_comes_ends_with_the_budget(
    rt: Runtime, web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert entry_jobs.FETCH_TIMEOUT_SECONDS == 5.0
    monkeypatch.setattr(entry_jobs, "FETCH_TIMEOUT_SECONDS", 0.3)
    web.pages["/slow"] = silence
    (entry_id,) = await _add(rt, web.url("/slow"))

    async with asyncio.timeout(PATIENCE):
        await fetch_entry(rt, FetchEntry(entry_id=entry_id))

    assert (await _entry(rt, entry_id)).fetch_status == "failed"


@pytest.mark.parametrize("mine", [{"title": "Mine"}, {"title": None}, {"description": "Mine too"}])
async def test_a_persons_edit_during_the_fetch_wins(
    rt: Runtime, web: Site, clock: ManualClock, mine: dict[str, str | None]
) -> None:
    gate, reached = asyncio.Event(), asyncio.Event()
    found = page(b"<title>Theirs</title><meta name=description content=theirs>")
    web.pages["/page"] = held(gate, found, reached)
    (entry_id,) = await _add(rt, web.url("/page"))
    list_id = (await _entry(rt, entry_id)).list_id
    fetching_it = asyncio.ensure_future(fetch_entry(rt, FetchEntry(entry_id=entry_id)))
    await reached.wait()

    async with rt.db.write() as session:
        await service.edit_entry(
            session, WHO, list_id, entry_id, EntryPatch.model_validate(mine), clock.now()
        )
    gate.set()
    await fetching_it

    entry = await _entry(rt, entry_id)
    assert entry.fetch_status == "success"
    expected = {"title": "Theirs", "description": "theirs"} | mine
    assert {"title": entry.title, "description": entry.description} == expected


async def test_a_result_for_the_old_url_is_dropped(
    rt: Runtime, web: Site, clock: ManualClock
) -> None:
    gate, reached = asyncio.Event(), asyncio.Event()
    web.pages["/old"] = held(gate, page(b"<title>Old</title>"), reached)
    web.pages["/new"] = page(b"<title>New</title>")
    (entry_id,) = await _add(rt, web.url("/old"))
    list_id = (await _entry(rt, entry_id)).list_id
    fetching_it = asyncio.ensure_future(fetch_entry(rt, FetchEntry(entry_id=entry_id)))
    await reached.wait()

    async with rt.db.write() as session:
        changes, address = EntryPatch(url=web.url("/new")), make.address(web.url("/new"))
        await service.edit_entry(
            session, WHO, list_id, entry_id, changes, clock.now(), address=address
        )
    gate.set()
    await fetching_it

    assert (await _entry(rt, entry_id)).fetch_status == "pending"
    await fetch_entry(rt, FetchEntry(entry_id=entry_id))
    assert (await _entry(rt, entry_id)).title == "New"


async def test_a_failed_page_is_fetched_again(rt: Runtime, web: Site, clock: ManualClock) -> None:
    (entry_id,) = await _add(rt, web.url("/page"))
    await fetch_entry(rt, FetchEntry(entry_id=entry_id))
    entry = await _entry(rt, entry_id)
    assert (entry.fetch_status, entry.title) == ("failed", None)
    web.pages["/page"] = page(b"<title>Up again</title>")
    clock.advance(3600)

    async with rt.db.write() as session:
        await service.refetch_entry(session, WHO, entry.list_id, entry_id, clock.now())
        assert await service.fail_stale_entries(session, clock.now()) == 0
    await fetch_entry(rt, FetchEntry(entry_id=entry_id))

    entry = await _entry(rt, entry_id)
    assert (entry.fetch_status, entry.title) == ("success", "Up again")


@on_sqlite
async def test_publishing_and_removing_do_not_stop_a_fetch(
    rt: Runtime, web: Site, clock: ManualClock
) -> None:
    web.pages["/page"] = page(b"<title>Theirs</title><meta property=og:image content=/a.png>")
    kept, removed = await _add(rt, web.url("/page"), web.url("/page"))
    list_id = (await _entry(rt, kept)).list_id
    async with rt.db.write() as session:
        await service.remove_entry(session, WHO, list_id, removed, clock.now())
        published = await service.publish_list(session, make.space(rt), WHO, list_id)
    before = published.updated_at
    clock.advance(60)

    for entry_id in (kept, removed):
        await fetch_entry(rt, FetchEntry(entry_id=entry_id))
    await fetch_entry(rt, FetchEntry(entry_id=kept))  # twice is once

    entry = await _entry(rt, kept)
    assert (entry.fetch_status, entry.title, entry.image) == (
        "success",
        "Theirs",
        web.url("/a.png"),
    )
    assert web.asked == ["/page"]
    assert published.updated_at == before


@on_sqlite
async def test_nothing_inside_is_asked_for_without_the_operators_leave(
    rt: Runtime, web: Site, tmp_path: Path
) -> None:
    closed = Runtime(
        settings=make_settings(tmp_path / "other"),
        db=rt.db,
        clock=rt.clock,
        ids=rt.ids,
        secret=rt.secret,
    )
    (entry_id,) = await _add(rt, web.url("/page"))

    await fetch_entry(closed, FetchEntry(entry_id=entry_id))

    assert (await _entry(rt, entry_id)).fetch_status == "failed"
    assert web.asked == []


@on_sqlite
async def test_adding_asks_for_a_look_in_the_same_transaction(
    client: AsyncClient, rt: Runtime, web: Site
) -> None:
    me = creator()
    found = await new_list(client, me, "https://example.com/a", "https://example.com/b")

    async with rt.db.read() as session:
        jobs = [
            job.payload
            for job in await session.scalars(
                select(Job).where(Job.kind == "lists.fetch_entry").order_by(Job.id)
            )
        ]
    assert jobs == [{"entry_id": int(entry["id"])} for entry in found["entries"]]


async def test_what_was_lost_is_not_waited_for_for_ever(
    client: AsyncClient, rt: Runtime, clock: ManualClock
) -> None:
    me = creator()
    old = await new_list(client, me, "https://example.com/a")
    clock.advance(16 * 60)
    young = await new_list(client, me, "https://example.com/a")

    async with rt.db.write() as session:
        assert await service.fail_stale_entries(session, clock.now()) == 1

    assert (await read(client, me, old["id"]))["entries"][0]["fetch_status"] == "failed"
    assert (await read(client, me, young["id"]))["entries"][0]["fetch_status"] == "pending"


def test_titles_are_one_clean_line() -> None:
    assert clean_line("a\u202eb\u200b\x07c \u00a0 d", 10) == "abc d"
    assert clean_line("👨\u200d👩\u200d👧 family", 20) == "👨\u200d👩\u200d👧 family"
    assert clean_line("word " * 100, 50) == "word " * 8 + "word…"
    assert len(clean_line("x" * 1000, MAX_TITLE) or "") == MAX_TITLE
    assert clean_line("\x00\n", 10) is None


def test_odd_pages_are_read_all_the_same() -> None:
    svg = "<svg><title>drawing</title></svg><title>late</title>"
    assert parse_metadata(svg, lambda reference: reference).title == "late"
    assert (
        parse_metadata("<title>one</title><title>two</title>", lambda reference: reference).title
        == "one"
    )
    assert (
        parse_metadata("<meta property='og:image' content='x'>", lambda _: None) == PageMetadata()
    )
    assert (
        parse_metadata("<meta property='og:image' content='y'>", lambda _: "x" * 3000)
        == PageMetadata()
    )
    assert (
        parse_metadata("<meta name=OG:TITLE content=Loud>", lambda reference: reference).title
        == "Loud"
    )
    assert parse_metadata("<" * 5000 + "title>x", lambda reference: reference) is not None
