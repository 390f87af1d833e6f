"""Editions: a draft takes over the name, and older editions stay available."""

from httpx import AsyncClient
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.lists import service
from refract.lists.access import ListCaller
from refract.lists.models import LinkList, ListAction, ListEntry
from refract.names.models import Name
from tests import make
from tests.client import on_sqlite
from tests.lists.clients import code, creator, new_list, published, read

A, B, C = (f"https://example.com/{letter}" for letter in "abc")


async def _slugs(rt: Runtime) -> dict[str, int]:
    async with rt.db.read() as session:
        return {name.key: name.target_id for name in await session.scalars(select(Name))}


async def test_an_edition_takes_over_the_name_when_it_is_published(
    client: AsyncClient, rt: Runtime, clock: ManualClock
) -> None:
    me = creator()
    first = await published(client, me, "reading", A, B, title="Reading")
    await client.patch(
        f"/api/v1/lists/{first['id']}/entries/{first['entries'][0]['id']}",
        headers=me,
        json={"title": "x"},
    )
    clock.advance(60)

    begun = await client.post(f"/api/v1/lists/{first['id']}/editions", headers=me)
    again = await client.post(f"/api/v1/lists/{first['id']}/editions", headers=me)

    assert (begun.status_code, again.status_code, again.json()["id"]) == (
        201,
        200,
        begun.json()["id"],
    )
    draft = begun.json()
    assert (draft["status"], draft["slug"], draft["title"], draft["edition"], draft["url"]) == (
        "draft",
        "reading",
        "Reading",
        None,
        None,
    )
    assert [entry["url"] for entry in draft["entries"]] == [A, B]
    assert not {entry["id"] for entry in draft["entries"]} & {
        entry["id"] for entry in first["entries"]
    }
    assert await _slugs(rt) == {"reading": int(first["id"])}
    settled = await client.post(
        f"/api/v1/lists/{draft['id']}/slug", headers=me, json={"slug": "other"}
    )
    assert code(settled) == (409, "SLUG_LOCKED")

    await client.post(f"/api/v1/lists/{draft['id']}/entries", headers=me, json={"url": C})
    out = (await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=me)).json()

    assert (out["edition"], out["slug"], out["url"]) == (2, "reading", "http://go.test/reading")
    assert await _slugs(rt) == {"reading": int(draft["id"])}
    latest = (await client.get("/api/v1/public/lists/reading")).json()
    older = (await client.get("/api/v1/public/lists/reading", params={"edition": 1})).json()
    assert (
        [one["url"] for one in latest["entries"]],
        latest["edition"],
        latest["latest_edition"],
    ) == ([A, B, C], 2, 2)
    assert ([one["url"] for one in older["entries"]], older["edition"]) == ([A, B], 1)
    assert older["url"] == "http://go.test/reading?edition=1"
    assert code(await client.get("/api/v1/public/lists/reading", params={"edition": 3})) == (
        404,
        "LIST_NOT_FOUND",
    )


@on_sqlite
async def test_a_draft_has_no_next_edition(client: AsyncClient) -> None:
    me = creator()
    draft = await new_list(client, me, A)

    assert code(await client.post(f"/api/v1/lists/{draft['id']}/editions", headers=me)) == (
        409,
        "LIST_NOT_PUBLISHED",
    )


async def _two_editions(client: AsyncClient, me: dict[str, str]) -> tuple[str, str]:
    first = await published(client, me, "reading", A)
    draft = (await client.post(f"/api/v1/lists/{first['id']}/editions", headers=me)).json()
    assert (
        await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=me)
    ).status_code == 200
    return first["id"], draft["id"]


@on_sqlite
async def test_with_the_latest_edition_all_of_them_go_and_the_name_can_be_freed(
    client: AsyncClient, rt: Runtime
) -> None:
    me = creator()
    first, second = await _two_editions(client, me)

    assert (await client.delete(f"/api/v1/lists/{second}", headers=me)).status_code == 204

    assert (await client.get(f"/api/v1/lists/{first}", headers=me)).status_code == 404
    assert (await client.post(f"/api/v1/lists/{second}/release", headers=me)).status_code == 204
    assert await _slugs(rt) == {}
    await published(client, creator(), "reading", C)
    assert code(await client.get("/api/v1/public/lists/reading", params={"edition": 2})) == (
        404,
        "LIST_NOT_FOUND",
    )


@on_sqlite
async def test_an_older_edition_goes_alone(client: AsyncClient, rt: Runtime) -> None:
    me = creator()
    first, second = await _two_editions(client, me)

    assert (await client.delete(f"/api/v1/lists/{first}", headers=me)).status_code == 204

    assert await _slugs(rt) == {"reading": int(second)}
    assert (await client.get("/api/v1/public/lists/reading")).json()["edition"] == 2
    assert (
        await client.get("/api/v1/public/lists/reading", params={"edition": 1})
    ).status_code == 404


@on_sqlite
async def test_an_edition_whose_list_was_deleted_claims_the_name_like_anybody(
    client: AsyncClient,
) -> None:
    me = creator()
    first = await published(client, me, "reading", A)
    draft = (await client.post(f"/api/v1/lists/{first['id']}/editions", headers=me)).json()
    await client.delete(f"/api/v1/lists/{first['id']}", headers=me)
    await client.post(f"/api/v1/lists/{first['id']}/release", headers=me)
    taken = await published(client, creator(), "reading", C)

    refused = await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=me)

    assert code(refused) == (409, "SLUG_TAKEN")
    assert (await read(client, me, draft["id"]))["status"] == "draft"
    assert taken["slug"] == "reading"


# -- what ends by itself


async def _lists(rt: Runtime) -> set[int]:
    async with rt.db.read() as session:
        return set(await session.scalars(select(LinkList.id)))


async def test_old_things_are_erased_and_others_stay(
    client: AsyncClient, rt: Runtime, clock: ManualClock, ada: User
) -> None:
    me, who = creator(), ListCaller(ada.id)
    deleted, untouched = await published(client, me, "gone", A), await new_list(client, me, A)
    kept = await published(client, me, "kept", A)
    async with rt.db.write() as session:
        owned = await make.list_of(session, rt, who, A)
    await client.delete(f"/api/v1/lists/{deleted['id']}", headers=me)
    clock.advance(89 * 86_400)
    young = await new_list(client, me, A)
    clock.advance(2 * 86_400)

    async with rt.db.write() as session:
        assert await service.purge_old_lists(session, clock.now()) == 2
        assert await service.purge_old_lists(session, clock.now()) == 0
        assert await service.purge_actions(session, clock.now()) == 3  # two published, one deleted

    assert await _lists(rt) == {int(kept["id"]), owned.id, int(young["id"])}
    assert int(untouched["id"]) not in await _lists(rt)
    async with rt.db.read() as session:
        assert set(await session.scalars(select(ListEntry.list_id))) == {
            int(kept["id"]),
            owned.id,
            int(young["id"]),
        }
        assert list(await session.scalars(select(ListAction))) == []


async def test_with_an_account_published_lists_are_deleted_and_drafts_erased(
    rt: Runtime, ada: User, bob: User
) -> None:
    space = make.space(rt)
    async with rt.db.write() as session:
        first = await make.list_of(session, rt, ListCaller(ada.id), A)
        await service.set_draft_slug(session, space, ListCaller(ada.id), first.id, "reading")
        await service.publish_list(session, space, ListCaller(ada.id), first.id)
        second, _ = await service.create_edition(session, space, ListCaller(ada.id), first.id)
        await service.publish_list(session, space, ListCaller(ada.id), second.id)
        draft = await make.list_of(session, rt, ListCaller(ada.id), A)
        foreign = await make.list_of(session, rt, ListCaller(bob.id), A)

    async with rt.db.write() as session:
        await service.erase_user_lists(session, rt.ids, ada.id, rt.clock.now())

    assert await _slugs(rt) == {}
    async with rt.db.read() as session:
        states = {
            row.id: row.deleted_at is not None for row in await session.scalars(select(LinkList))
        }
    assert states == {first.id: True, second.id: True, foreign.id: False}
    assert draft.id not in states


async def test_the_draft_of_a_new_edition_says_what_it_replaces(client: AsyncClient) -> None:
    me = creator()
    first = await published(client, me, "reading", "https://example.com/a")
    draft = (await client.post(f"/api/v1/lists/{first['id']}/editions", headers=me)).json()

    assert draft["replaces"] == "http://go.test/reading"
    assert first["replaces"] is None
    shown = await client.get("/app/lists", headers=me | {"Accept": "text/html"})
    assert "Draft of a new edition of /reading" in shown.text
