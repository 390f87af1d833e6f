"""Reading states and notes: changed, filtered, searched, counted and undone."""

from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.models import READING_STATES, ItemUndo, LedgerEntry
from refract.library.schemas import ItemOut
from refract.library.service import storage
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.library.conftest import Look, Save

BULK = "/app/library/bulk"


@pytest.fixture
async def as_ada(rt: Runtime, ada: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, ada))


def states_of(item: dict[str, Any] | ItemOut) -> str:
    card = item if isinstance(item, dict) else item.model_dump()
    return " ".join(name for name in READING_STATES if card[name])


async def test_states_and_notes_are_changed_like_other_fields(
    rt: Runtime, client: AsyncClient, as_ada: dict[str, str], ada: User, bob: User, save: Save
) -> None:
    item = await save("https://example.com/engines", enrich=False)
    assert (states_of(item), item.notes) == ("", None)
    path = f"/api/v1/items/{item.id}"
    first = await client.patch(
        path,
        headers=as_ada | {"If-Match": f'"{item.version}"'},
        json={"unread": True, "favorite": True, "notes": " Boilers & valves "},
    )
    assert (states_of(first.json()), first.json()["notes"]) == (
        "unread favorite",
        "Boilers & valves",
    )
    assert first.json()["version"] == item.version + 1
    stale = await client.patch(
        path, headers=as_ada | {"If-Match": f'"{item.version}"'}, json={"archived": True}
    )
    assert stale.status_code == 412

    body = {"archived": True, "unread": False, "favorite": None}
    second = (await client.patch(path, headers=as_ada, json=body)).json()
    assert (states_of(second), second["notes"]) == ("favorite archived", "Boilers & valves")
    assert (second["status"], second["title"]) == ("ARCHIVED", item.title)
    undone = (await client.post(f"{path}/undo", headers=as_ada)).json()
    assert (states_of(undone), undone["notes"]) == ("unread favorite", "Boilers & valves")
    cleared = (await client.patch(path, headers=as_ada, json={"notes": None})).json()
    assert (cleared["notes"], states_of(cleared)) == (None, "unread favorite")

    refusals: list[dict[str, Any]] = [
        {"unread": "maybe"},
        {"archived": []},
        {"notes": "x" * 10_001},
    ]
    for wrong in refusals:
        refused = await client.patch(path, headers=as_ada, json=wrong)
        assert refused.status_code == 422, wrong
    async with rt.db.write() as session:
        as_bob = by_key(await make.key(session, rt, bob))
    foreign = await client.patch(path, headers=as_bob, json={"unread": False})
    assert foreign.status_code == 404
    async with rt.db.read() as session:
        assert (await session.scalars(select(LedgerEntry))).all() == []


async def test_items_start_with_states_and_keep_them(
    client: AsyncClient, as_ada: dict[str, str]
) -> None:
    given = {"unread": True, "favorite": True, "archived": True, "notes": "Mine"}
    one = await client.post(
        "/api/v1/items", headers=as_ada, json={"text": "A thought.", "enrich": False, **given}
    )
    assert {name: one.json()[name] for name in given} == given
    several = await client.post(
        "/api/v1/items/bulk", headers=as_ada, json={"texts": ["One.", "Two."], **given}
    )
    made = [row["item"] for row in several.json()["results"]]
    assert [{name: item[name] for name in given} for item in made] == [given, given]

    path = f"/api/v1/items/{made[0]['id']}"
    confirmed = (await client.post(f"{path}/confirm", headers=as_ada, json={})).json()
    assert (confirmed["status"], states_of(confirmed)) == ("ARCHIVED", "unread favorite archived")
    assert (await client.delete(path, headers=as_ada)).status_code == 204
    conflict = await client.patch(path, headers=as_ada, json={"unread": False})
    assert (conflict.status_code, conflict.json()["code"]) == (409, "INVALID_STATE_TRANSITION")
    back = (await client.post(f"{path}/undo", headers=as_ada)).json()
    assert (states_of(back), back["notes"]) == ("unread favorite archived", "Mine")


@pytest.fixture
async def shelves(save: Save) -> dict[str, ItemOut]:
    """Items by what is special about them."""
    return {
        "plain": await save("Plain engine.", enrich=False, new_tags=["x"]),
        "unread": await save("Unread engine.", enrich=False, unread=True, new_tags=["x"]),
        "loved": await save("Loved engine.", enrich=False, favorite=True, unread=True),
        "away": await save("Archived engine.", enrich=False, archived=True, notes="Zylinder"),
        "both": await save(
            "Archived and loved.", enrich=False, archived=True, favorite=True, unread=True
        ),
    }


FILTERS = [
    ({}, "plain unread loved"),
    ({"archived": "any"}, "plain unread loved away both"),
    ({"archived": "true"}, "away both"),
    ({"archived": "false", "q": "engine"}, "plain unread loved"),
    ({"unread": "true"}, "unread loved"),
    ({"unread": "false"}, "plain"),
    ({"favorite": "true"}, "loved"),
    ({"favorite": "true", "archived": "any"}, "loved both"),
    ({"favorite": "false", "unread": "true"}, "unread"),
    ({"tag": "x", "unread": "true"}, "unread"),
    ({"q": "engine"}, "plain unread loved away"),
    ({"q": "zylind"}, "away"),
    ({"q": "is:archived"}, "away both"),
    ({"q": "engine is:archived"}, "away"),
    ({"q": "engine -is:archived"}, "plain unread loved"),
    ({"q": "is:unread"}, "unread loved both"),
    ({"q": "IS:READ"}, "plain away"),
    ({"q": "is:favourite"}, "loved both"),
    ({"q": "is:favorite -is:unread"}, ""),
    ({"q": "is:read is:unread"}, ""),
    ({"q": "#x is:unread"}, "unread"),
    ({"q": "is:unread", "archived": "true"}, "both"),
]


async def test_filters_and_searches(
    client: AsyncClient, as_ada: dict[str, str], shelves: dict[str, ItemOut]
) -> None:
    names = {str(item.id): name for name, item in shelves.items()}
    for params, expected in FILTERS:
        found = await client.get("/api/v1/library", headers=as_ada, params=params)
        listed = {names[item["id"]] for item in found.json()["items"]}
        assert listed == set(expected.split()), params
        counted = (
            await client.get("/api/v1/library/filters", headers=as_ada, params=params)
        ).json()
        assert counted["total"] == len(listed), params
    wrong = await client.get("/api/v1/library", headers=as_ada, params={"archived": "maybe"})
    assert wrong.status_code == 422


@pytest.mark.parametrize(
    ("params", "counts"),
    [
        ({}, (2, 2, 2)),
        ({"archived": "true"}, (2, 2, 2)),
        ({"unread": "true", "favorite": "false"}, (2, 2, 2)),
        ({"tag": "x"}, (1, 0, 0)),
        ({"q": "engine"}, (2, 1, 1)),
        ({"q": "engine", "unread": "false"}, (2, 1, 1)),
        ({"q": "is:favorite"}, (2, 2, 1)),
        ({"state": "DISCARDED"}, (0, 0, 0)),
        ({"tag": "unknown"}, (0, 0, 0)),
    ],
)
async def test_views_are_counted_whatever_view_is_chosen(
    client: AsyncClient,
    as_ada: dict[str, str],
    shelves: dict[str, ItemOut],
    params: dict[str, str],
    counts: tuple[int, int, int],
) -> None:
    assert shelves
    found = (await client.get("/api/v1/library/filters", headers=as_ada, params=params)).json()
    assert (found["unread"], found["favorites"], found["archived"]) == counts


async def test_discarded_items_are_listed_even_if_they_were_archived(
    client: AsyncClient, as_ada: dict[str, str], shelves: dict[str, ItemOut]
) -> None:
    away = shelves["away"]
    await client.delete(f"/api/v1/items/{away.id}", headers=as_ada)
    params = {"state": "DISCARDED"}
    found = (await client.get("/api/v1/library", headers=as_ada, params=params)).json()
    assert [item["id"] for item in found["items"]] == [str(away.id)]


async def test_notes_are_found_as_long_as_they_are_there(
    client: AsyncClient, as_ada: dict[str, str], save: Save
) -> None:
    item = await save("https://example.com/engines", enrich=False)
    path = f"/api/v1/items/{item.id}"

    async def find(q: str) -> int:
        found = await client.get("/api/v1/library", headers=as_ada, params={"q": q})
        return len(found.json()["items"])

    for body, expected in (
        ({"notes": "Überdruckventil"}, 1),
        ({"favorite": True}, 1),
        ({"notes": None}, 0),
    ):
        await client.patch(path, headers=as_ada, json=body)
        assert await find("uberdruck") == expected, body
    await client.post(f"{path}/undo", headers=as_ada)
    assert await find("uberdruck") == 1


async def test_notes_take_storage(
    rt: Runtime, client: AsyncClient, as_ada: dict[str, str], ada: User, save: Save
) -> None:
    item = await save("A thought.", enrich=False, notes="Ünd")
    path = f"/api/v1/items/{item.id}"
    for body, size in (({}, 4), ({"notes": "x" * 1_000}, 1_000), ({"notes": None}, 0)):
        await client.patch(path, headers=as_ada, json=body)
        async with rt.db.read() as session:
            kept = await storage.get_usage(session, ada.id)
            assert kept == await storage.measure_usage(session, ada.id)
            assert kept.bytes == len("A thought.") + size


@on_sqlite
async def test_a_change_of_an_older_release_is_undone(
    rt: Runtime, client: AsyncClient, as_ada: dict[str, str], save: Save
) -> None:
    """Its record knows neither states nor notes: they stay."""
    item = await save("A thought.", enrich=False, unread=True, notes="Mine")
    path = f"/api/v1/items/{item.id}"
    await client.patch(path, headers=as_ada, json={"title": "Changed"})
    async with rt.db.write() as session:
        undo = await session.get_one(ItemUndo, item.id)
        new = (*READING_STATES, "notes")
        undo.before = {name: value for name, value in undo.before.items() if name not in new}
    undone = await client.post(f"{path}/undo", headers=as_ada)
    assert (undone.status_code, undone.json()["title"]) == (200, item.title)
    assert (states_of(undone.json()), undone.json()["notes"]) == ("unread", "Mine")


@on_sqlite
async def test_pages_show_views_and_mark_several_items(
    rt: Runtime, client: AsyncClient, ada: User, shelves: dict[str, ItemOut], look: Look
) -> None:
    async with rt.db.write() as session:
        client.headers.update(by_cookie(rt, await make.cookie(session, rt, ada)))
    client.headers["Accept"] = "text/html"
    for view, expected in {
        "": "plain unread loved",
        "unread": "unread loved",
        "favorites": "loved both",
        "archive": "away both",
        "nonsense": "plain unread loved",
    }.items():
        page = (await client.get("/app/library", params={"view": view})).text
        shown = {name for name, item in shelves.items() if f"library/{item.id}#edit" in page}
        shown |= {name for name, item in shelves.items() if f'library/{item.id}"' in page}
        assert shown == set(expected.split()), view

    chosen = [shelves["plain"], shelves["unread"], shelves["loved"]]
    ids = [str(item.id) for item in chosen]
    for act, after in {
        "read": ["", "", "favorite"],
        "favorite": ["favorite", "favorite", "favorite"],
        "unfavorite": ["", "", ""],
        "unread": ["unread", "unread", "unread"],
        "archive": ["unread archived"] * 3,
        "unarchive": ["unread", "unread", "unread"],
    }.items():
        await client.post(BULK, data={"act": act, "ids": ids})
        assert [states_of(await look(item)) for item in chosen] == after, act
    await client.post(f"/app/library/undo?ids={','.join(ids)}")
    assert [states_of(await look(item)) for item in chosen] == ["unread archived"] * 3

    form = {"title": "Loved", "summary": "", "notes": "Own\nwords <3", "tags": ""}
    await client.post(f"/app/library/{chosen[2].id}", data=form)
    page = (await client.get(f"/app/library/{chosen[2].id}")).text
    assert (await look(chosen[2])).notes == "Own\nwords <3"
    assert "Own\nwords &lt;3</p>" in page
    refused = await client.post(f"/app/library/{chosen[2].id}", data=form | {"notes": "x" * 10_001})
    assert (refused.status_code, "item-notes-error" in refused.text) == (422, True)
