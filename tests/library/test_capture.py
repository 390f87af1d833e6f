"""Capture: the type of a text, what is committed together, and duplicates."""

import asyncio
from datetime import timedelta

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.jobs.models import Job
from refract.library.models import Item, ItemTag
from refract.library.recognition import extract_first_line, recognize_text, split_paste
from refract.tags.models import Tag
from tests.client import on_sqlite
from tests.library.conftest import Look, Save


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("https://example.com/a", "ARTICLE"),
        ("  https://example.com/a \n", "ARTICLE"),
        ("HTTPS://EXAMPLE.com", "ARTICLE"),
        ("see https://example.com/a", "NOTE"),
        ("https://example.com/a https://example.com/b", "NOTE"),
        ("https://", "NOTE"),
        ("javascript:alert(1)", "NOTE"),
        ("ftp://example.com/a", "NOTE"),
        ("https://user:secret@example.com/", "NOTE"),
        ("例えば", "NOTE"),
    ],
)
def test_exactly_one_address_is_an_article(text: str, kind: str) -> None:
    assert recognize_text(text).type == kind


@pytest.mark.parametrize(
    "other",
    [
        "http://example.com/a?b=1&a=2",
        "https://www.example.com/a/?a=2&b=1&utm_source=x#top",
        "https://EXAMPLE.com:443/a?fbclid=9&a=2&b=1",
    ],
)
def test_addresses_of_one_page_have_one_digest(other: str) -> None:
    assert (
        recognize_text("https://example.com/a?a=2&b=1").url_digest
        == recognize_text(other).url_digest
    )
    assert (
        recognize_text("https://example.com/b?a=2&b=1").url_digest
        != recognize_text(other).url_digest
    )


def test_titles_and_pastes() -> None:
    assert extract_first_line("\n\n  A thought.  \nmore") == "A thought."
    assert extract_first_line("x" * 61) == "x" * 59 + "…"
    assert split_paste("https://a.example/\n\nhttps://b.example/\nhttps://a.example/") == [
        "https://a.example/",
        "https://b.example/",
    ]
    assert split_paste("https://a.example/\nand a thought") == ["https://a.example/\nand a thought"]
    assert split_paste(" \n ") == []


async def test_without_enrichment_it_is_in_the_library_at_once(rt: Runtime, save: Save) -> None:
    item = await save("\nBuy coal\nfor the engine", enrich=False, new_tags=["Shopping"])

    assert (item.status, item.enrichment, item.title, item.type) == (
        "ARCHIVED",
        "MANUAL",
        "Buy coal",
        "NOTE",
    )
    assert item.confirmed_at == item.created_at
    assert [tag.name for tag in item.tags] == ["Shopping"]
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(Job)) == 0
        assert (await session.scalars(select(Tag.usage_count))).all() == [1]


async def test_a_failed_capture_leaves_nothing(rt: Runtime, as_ada: AsyncClient) -> None:
    answer = await as_ada.post(
        "/api/v1/items", json={"text": "A thought.", "new_tags": ["fine"], "tag_ids": ["123"]}
    )

    assert (answer.status_code, answer.json()["code"]) == (422, "UNKNOWN_TAG")
    async with rt.db.read() as session:
        for model in (Item, Job, ItemTag, Tag):
            assert await session.scalar(select(func.count()).select_from(model)) == 0


@on_sqlite
async def test_somebody_elses_tag_is_no_tag(
    rt: Runtime, as_ada: AsyncClient, save: Save, bob: User
) -> None:
    foreign = (await save("Mine.", by=bob, new_tags=["Private"])).tags[0]

    assert (
        await as_ada.post(
            "/api/v1/items", json={"text": "A thought.", "tag_ids": [str(foreign.id)]}
        )
    ).status_code == 422


@on_sqlite
async def test_a_page_that_is_here_already_is_noticed(
    save: Save, look: Look, rt: Runtime, bob: User, as_ada: AsyncClient
) -> None:
    first = await save("https://example.com/a")
    again = await save("https://www.example.com/a/?utm_source=mail")
    await save("https://example.com/a", by=bob)

    assert first.duplicate_of is None
    assert again.duplicate_of == first.id
    assert (await as_ada.delete(f"/api/v1/items/{first.id}")).status_code == 204
    assert (await look(again)).duplicate_of is None, "a discarded item is no longer here"


@on_sqlite
async def test_shapes_of_the_api(as_ada: AsyncClient) -> None:
    made = await as_ada.post(
        "/api/v1/items", json={"text": "https://example.com/a", "new_tags": ["Engines"]}
    )

    assert made.status_code == 201
    body = made.json()
    assert made.headers["location"] == f"/api/v1/items/{body['id']}"
    assert {name: made.headers[f"x-ai-quota-{name}"] for name in ("limit", "remaining")} == {
        "limit": "50",
        "remaining": "50",
    }
    assert body["tags"][0] == {"id": body["tags"][0]["id"], "name": "Engines", "color": "#6B7280"}
    wanted = {
        "id",
        "text",
        "url",
        "title",
        "summary",
        "type",
        "status",
        "enrichment",
        "created_at",
        "updated_at",
        "confirmed_at",
        "tags",
        "suggestions",
    }
    assert wanted <= set(body)
    assert (body["url"], body["type"], body["status"]) == (
        "https://example.com/a",
        "ARTICLE",
        "ENRICHING",
    )
    read = await as_ada.get(f"/api/v1/items/{body['id']}")
    assert read.json() == body
    pending = (await as_ada.get("/api/v1/items/pending")).json()
    assert pending == {"items": [body], "next_cursor": None}
    for bad in (
        {"text": ""},
        {"text": " \n "},
        {"text": "x" * 10_001},
        {"text": "x", "unknown": 1},
        {"text": "x", "new_tags": ["<b>"]},
    ):
        assert (await as_ada.post("/api/v1/items", json=bad)).status_code == 422, bad


@on_sqlite
async def test_bulk_paste_and_pages_of_the_queue(as_ada: AsyncClient) -> None:
    paste = "\n".join(f"https://example.com/{number}" for number in range(5))
    result = (
        await as_ada.post("/api/v1/items/bulk", json={"paste": paste, "texts": ["A thought.", " "]})
    ).json()

    assert (result["created"], result["failed"]) == (6, 1)
    assert [row["status"] for row in result["results"]] == [201, 422, *[201] * 5]
    seen, cursor = [], None
    while True:
        asked = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        answer = (await as_ada.get("/api/v1/items/pending", params=asked)).json()
        seen += [item["text"] for item in answer["items"]]
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    assert seen == [*[f"https://example.com/{number}" for number in (4, 3, 2, 1, 0)], "A thought."]


async def test_fifty_clients_with_one_key_make_one_item(rt: Runtime, as_ada: AsyncClient) -> None:
    async def send(text: str = "A thought.") -> tuple[int, str]:
        while True:
            answer = await as_ada.post(
                "/api/v1/items", json={"text": text}, headers={"Idempotency-Key": "one"}
            )
            if answer.status_code not in (409, 503):  # the first is still at it
                return answer.status_code, answer.text
            await asyncio.sleep(0.05)

    answers = await asyncio.gather(*(send() for _ in range(50)))

    assert {status for status, _ in answers} == {201}
    assert len({body for _, body in answers}) == 1
    assert (await send("Another."))[0] == 422
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(Item)) == 1
        assert await session.scalar(select(func.count()).select_from(Job)) == 1


async def test_undo_of_a_capture_for_a_day(
    save: Save, as_ada: AsyncClient, clock: ManualClock
) -> None:
    item, late = await save("A thought.", new_tags=["x"]), await save("Another.")

    undone = await as_ada.post(f"/api/v1/items/{item.id}/undo")

    assert (undone.json()["status"], undone.json()["tags"]) == ("DISCARDED", [])
    assert (await as_ada.post(f"/api/v1/items/{item.id}/undo")).json()["code"] == "NOTHING_TO_UNDO"
    clock.advance(timedelta(hours=24, seconds=1).total_seconds())
    assert (await as_ada.post(f"/api/v1/items/{late.id}/undo")).status_code == 409
