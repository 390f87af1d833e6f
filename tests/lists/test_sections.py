"""Sections: headings between the entries of a list."""

from typing import Any

import pytest
from httpx import AsyncClient

from refract.lists.sections import ListSection, close_gap, open_gap
from tests.lists.clients import code, creator, new_list, published, read

HTML = {"Accept": "text/html"}
URLS = tuple(f"https://example.com/{letter}" for letter in "abcd")


async def _add(
    client: AsyncClient, me: dict[str, str], list_id: str, title: str, position: int | None = None
) -> dict[str, Any]:
    body = {"title": title} | ({} if position is None else {"position": position})
    response = await client.post(f"/api/v1/lists/{list_id}/sections", headers=me, json=body)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


async def _outline(client: AsyncClient, me: dict[str, str], list_id: str) -> list[str]:
    """Return headings and last letters of URLs in the order of the list."""
    found = await read(client, me, list_id)
    lines: list[str] = []
    sections = list(found["sections"])
    for entry in found["entries"]:
        while sections and sections[0]["position"] <= entry["position"]:
            lines.append(sections.pop(0)["title"])
        lines.append(entry["url"][-1])
    return lines + [section["title"] for section in sections]


async def test_sections_are_added_renamed_moved_and_removed(client: AsyncClient) -> None:
    me = creator()
    made = await new_list(client, me, *URLS)
    first = await _add(client, me, made["id"], "  Start here ", 1)
    last = await _add(client, me, made["id"], "Later")
    path = f"/api/v1/lists/{made['id']}/sections"

    assert (first["title"], first["position"], last["position"]) == ("Start here", 1, 5)
    renamed = await client.patch(
        f"{path}/{last['id']}", headers=me, json={"title": "Deep", "position": 3}
    )
    assert renamed.json() == {"id": last["id"], "title": "Deep", "position": 3}
    assert await _outline(client, me, made["id"]) == ["Start here", "a", "b", "Deep", "c", "d"]
    assert (await client.delete(f"{path}/{first['id']}", headers=me)).status_code == 204
    assert await _outline(client, me, made["id"]) == ["a", "b", "Deep", "c", "d"]
    gone = await client.delete(f"{path}/{first['id']}", headers=me)
    assert code(gone) == (404, "SECTION_NOT_FOUND")


@pytest.mark.parametrize(
    "body", [{"title": " "}, {"title": "x" * 101}, {"title": "A", "position": 0}]
)
async def test_bad_sections_are_refused(client: AsyncClient, body: dict[str, Any]) -> None:
    me = creator()
    made = await new_list(client, me, *URLS)

    response = await client.post(f"/api/v1/lists/{made['id']}/sections", headers=me, json=body)

    assert code(response) == (422, "VALIDATION_FAILED")


async def test_a_list_has_at_most_fifty_sections_and_a_published_one_keeps_them(
    client: AsyncClient,
) -> None:
    me = creator()
    made = await published(client, me, "reading", *URLS)
    path = f"/api/v1/lists/{made['id']}/sections"
    assert code(await client.post(path, headers=me, json={"title": "A"})) == (409, "LIST_IMMUTABLE")
    draft = await new_list(client, me, URLS[0])
    for number in range(50):
        await _add(client, me, draft["id"], f"Section {number}")

    full = await client.post(
        f"/api/v1/lists/{draft['id']}/sections", headers=me, json={"title": "One more"}
    )

    assert code(full) == (422, "TOO_MANY_SECTIONS")


async def test_links_that_are_added_belong_to_the_last_section(client: AsyncClient) -> None:
    me = creator()
    made = await new_list(client, me, URLS[0])
    await _add(client, me, made["id"], "Later")

    await client.post(f"/api/v1/lists/{made['id']}/entries", headers=me, json={"url": URLS[1]})

    assert await _outline(client, me, made["id"]) == ["a", "Later", "b"]


async def test_a_removed_entry_returns_into_its_section(client: AsyncClient) -> None:
    me = creator()
    made = await new_list(client, me, *URLS)
    await _add(client, me, made["id"], "One", 1)
    await _add(client, me, made["id"], "Two", 3)
    before = await _outline(client, me, made["id"])

    for entry in made["entries"]:
        path = f"/api/v1/lists/{made['id']}/entries/{entry['id']}"
        assert (await client.delete(path, headers=me)).status_code == 204
        shorter = [line for line in before if line != entry["url"][-1]]
        assert await _outline(client, me, made["id"]) == shorter
        assert (await client.post(f"{path}/restore", headers=me)).status_code == 200
        assert await _outline(client, me, made["id"]) == before


async def test_the_order_sets_entries_and_sections_together(client: AsyncClient) -> None:
    me = creator()
    made = await new_list(client, me, *URLS)
    one = await _add(client, me, made["id"], "One", 1)
    two = await _add(client, me, made["id"], "Two", 3)
    ids = [entry["id"] for entry in made["entries"]]
    path = f"/api/v1/lists/{made['id']}/order"

    await client.put(path, headers=me, json={"entry_ids": ids[::-1]})
    assert await _outline(client, me, made["id"]) == ["One", "d", "c", "Two", "b", "a"]
    places = [{"id": two["id"], "position": 1}, {"id": one["id"], "position": 4}]
    await client.put(path, headers=me, json={"entry_ids": ids, "sections": places})
    assert await _outline(client, me, made["id"]) == ["Two", "a", "b", "c", "One", "d"]
    partial = {"entry_ids": ids, "sections": places[:1]}
    assert code(await client.put(path, headers=me, json=partial)) == (409, "ORDER_MISMATCH")


async def test_forms_move_entries_across_headings_and_undo_a_removed_heading(
    client: AsyncClient,
) -> None:
    me = creator() | HTML
    made = await new_list(client, me, *URLS[:2])
    path = f"/app/lists/{made['id']}"
    added = await client.post(f"{path}/sections", headers=me, data={"title": "Later"})
    assert added.status_code == 303
    section = (await read(client, me, made["id"]))["sections"][0]["id"]
    last = made["entries"][1]["id"]

    await client.post(f"{path}/entries/{last}/down", headers=me)
    assert await _outline(client, me, made["id"]) == ["a", "Later", "b"]
    await client.post(f"{path}/sections/{section}/up", headers=me)
    assert await _outline(client, me, made["id"]) == ["Later", "a", "b"]
    order = f"{last},s{section},{made['entries'][0]['id']}"
    moved = await client.post(f"{path}/order", headers=me, data={"order": order})
    assert moved.status_code == 204
    assert await _outline(client, me, made["id"]) == ["b", "Later", "a"]
    await client.post(f"{path}/sections/{section}", headers=me, data={"title": "Much later"})
    await client.post(f"{path}/sections/{section}/remove", headers=me)
    assert await _outline(client, me, made["id"]) == ["b", "a"]
    undo = f"{path}/sections/restore?title=Much+later&position=2"
    assert (await client.post(undo, headers=me)).status_code == 303
    assert await _outline(client, me, made["id"]) == ["b", "Much later", "a"]
    blank = await client.post(f"{path}/sections", headers=me, data={"title": " "})
    assert blank.status_code == 422


async def test_page_public_api_and_editions_show_the_sections(client: AsyncClient) -> None:
    me = creator()
    draft = await new_list(client, me, *URLS)
    await _add(client, me, draft["id"], "<Two>", 3)
    await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=me, json={"slug": "reading"})

    page = (await client.get("/reading", headers=HTML)).text
    public = (await client.get("/api/v1/public/lists/reading")).json()
    edition = (await client.post(f"/api/v1/lists/{draft['id']}/editions", headers=me)).json()

    assert "&lt;Two&gt;</h2>" in page
    assert '<ol class="list-page-entries list-page-list" start="3">' in page
    assert [entry["section"] for entry in public["entries"]] == [None, None, "<Two>", "<Two>"]
    assert [section["title"] for section in edition["sections"]] == ["<Two>"]


def test_an_entry_whose_section_is_gone_takes_its_old_place() -> None:
    sections = [ListSection(1, "One", 1), ListSection(2, "Two", 3)]

    assert [section.position for section in close_gap(sections, 2)] == [1, 2]
    assert [section.position for section in open_gap(sections, 3, 9)] == [1, 3]
    assert [section.position for section in open_gap(sections, 3, 1)] == [1, 4]
    assert [section.position for section in open_gap(sections, 1, None)] == [2, 4]
