"""The number of SQL statements of frequent requests, on three databases."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from httpx import AsyncClient

from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from tests.people import Headers

CREATE_LINK = 8
"""Caller, blocked domains, names, link, owner, feed, and two for the limit."""
CAPTURE_ITEM = 9
"""Caller, job, item, undo record, search index, storage, quota, and two for the limit."""
MAX_LIBRARY_SEARCH, MAX_SEARCH = 9, 14


@contextmanager
def _record(rt: Runtime) -> Iterator[list[str]]:
    seen: list[str] = []
    engines = {rt.db.engine, rt.db.read_engine}
    stops = [count_statements(engine, seen.append) for engine in engines]
    try:
        yield seen
    finally:
        for stop in stops:
            stop()


def _count_notifications(rt: Runtime) -> int:
    """Return the statements by which a transaction notifies other processes."""
    return 1 if rt.db.dialect == "postgresql" else 0


async def _post(client: AsyncClient, headers: Headers, path: str, body: Any) -> None:
    answer = await client.post(f"/api/v1/{path}", headers=headers, json=body)
    assert answer.status_code in (200, 201), answer.text


async def test_creating_a_link_takes_few_statements(
    rt: Runtime, client: AsyncClient, as_ada: Headers
) -> None:
    await _post(client, as_ada, "links", {"destination": "https://example.com/1"})
    with _record(rt) as seen:
        await _post(client, as_ada, "links", {"destination": "https://example.com/2"})
    assert len(seen) == CREATE_LINK + _count_notifications(rt), seen


async def test_creating_many_links_takes_as_many_statements_as_one(
    rt: Runtime, client: AsyncClient, as_ada: Headers
) -> None:
    await _post(client, as_ada, "links", {"destination": "https://example.com/1"})
    rows = [{"destination": f"https://example.com/{number}"} for number in range(100)]
    with _record(rt) as seen:
        await _post(client, as_ada, "links/bulk", {"links": rows})
    assert len(seen) == CREATE_LINK + _count_notifications(rt), seen


async def test_capturing_an_item_takes_few_statements(
    rt: Runtime, client: AsyncClient, as_ada: Headers
) -> None:
    await _post(client, as_ada, "items", {"text": "The first note"})
    with _record(rt) as seen:
        await _post(client, as_ada, "items", {"text": "Another note"})
    assert len(seen) == CAPTURE_ITEM + _count_notifications(rt), seen


async def test_searching_takes_no_more_statements_for_more_matches(
    rt: Runtime, client: AsyncClient, as_ada: Headers
) -> None:
    counts: list[list[int]] = []
    for count in (2, 40):
        for number in range(count):
            text = f"Notes on topic {count}-{number}"
            await _post(client, as_ada, "items", {"text": text, "enrich": False})
        rows = [
            {"destination": f"https://example.com/topic/{count}/{number}"}
            for number in range(count)
        ]
        await _post(client, as_ada, "links/bulk", {"links": rows})
        counts.append([])
        for path in ("library?q=notes%20on%20topic", "search?q=topic"):
            with _record(rt) as seen:
                answer = await client.get(f"/api/v1/{path}", headers=as_ada)
            assert answer.status_code == 200
            counts[-1].append(len(seen))
    few, many = counts
    assert all(after <= before for before, after in zip(few, many, strict=True))
    assert few[0] <= MAX_LIBRARY_SEARCH
    assert few[1] <= MAX_SEARCH
