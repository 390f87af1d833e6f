"""Personal tags through the API, and races for one of them."""

import asyncio
from datetime import timedelta

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.errors import StoreBusy
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.item_tags import set_item_tags
from refract.library.models import Item, ItemTag
from refract.library.service import tag_changes
from refract.tags import personal_tags
from refract.tags.errors import NoTagChange, TagNotFound
from refract.tags.models import DEFAULT_COLOR, Tag
from tests import make
from tests.client import by_key, on_sqlite
from tests.tags import items

TAGS = "/api/v1/tags"


@on_sqlite
async def test_seed_004_create_finds_makes_and_revives(
    client: AsyncClient, as_ada: dict[str, str]
) -> None:
    made = await client.post(
        TAGS, headers=as_ada, json={"name": "  Machine  learning ", "color": "#2563eb"}
    )
    again = await client.post(
        TAGS, headers=as_ada, json={"name": "MACHINE LEARNING", "color": "#000000"}
    )
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json() == again.json()
    assert {
        name: made.json()[name]
        for name in ("scope", "name", "slug", "color", "usage_count", "last_used_at")
    } == {
        "scope": "personal",
        "name": "Machine learning",
        "slug": "machine learning",
        "color": "#2563EB",
        "usage_count": 0,
        "last_used_at": None,
    }

    assert (await client.delete(f"{TAGS}/{made.json()['id']}", headers=as_ada)).status_code == 204
    assert (await client.get(TAGS, headers=as_ada)).json()["items"] == []
    revived = await client.post(TAGS, headers=as_ada, json={"name": "machine learning"})
    assert (revived.status_code, revived.json()["id"]) == (201, made.json()["id"])
    assert (await client.delete(f"{TAGS}/1", headers=as_ada)).json()["code"] == "TAG_NOT_FOUND"


@on_sqlite
@pytest.mark.parametrize("name", ["", "  ", "a" * 51, "a,b", "<b>", "###", "a\u202eb", "\u0007x"])
async def test_a_name_that_cannot_be_had_says_why(
    client: AsyncClient, as_ada: dict[str, str], name: str
) -> None:
    refused = await client.post(TAGS, headers=as_ada, json={"name": name})
    assert (refused.status_code, refused.json()["code"]) == (422, "INVALID_TAG")
    assert (await client.post(TAGS, headers=as_ada, json={"name": "x", "color": "red"})).json()[
        "code"
    ] == "INVALID_TAG"


async def test_lists_by_name_usage_and_last_use_a_page_at_a_time(
    rt: Runtime,
    client: AsyncClient,
    ada: User,
    bob: User,
    clock: ManualClock,
    as_ada: dict[str, str],
) -> None:
    async with rt.db.write() as session:
        for some in (["alpha", "Beta"], ["Beta", "gamma"], ["Beta"]):
            clock.advance(60)
            await items.item(session, rt, ada, *some)
        await items.tag(session, rt, ada, "unused")
        await items.tag(session, rt, ada, "never")
        await items.item(session, rt, bob, "bob's")
        await make.link(session, rt, ada, tags=["shared"])

    async def names(**asked: object) -> list[str]:
        found: list[str] = []
        cursor = None
        while True:
            given = {
                name: str(value)
                for name, value in {**asked, "limit": 2, "cursor": cursor}.items()
                if value is not None
            }
            page = (await client.get(TAGS, headers=as_ada, params=given)).json()
            found += [tag["name"] for tag in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    assert await names(scope="personal") == ["alpha", "Beta", "gamma", "never", "unused"]
    assert (await names(scope="personal", sort="usage"))[:1] == ["Beta"]
    assert await names(scope="personal", sort="last_used") == [
        "Beta",
        "gamma",
        "alpha",
        "never",
        "unused",
    ]
    assert await names(scope="personal", q="A") == ["alpha", "Beta", "gamma"]
    assert await names(scope="personal", unused=True) == ["never", "unused"]
    assert await names(scope="shared") == ["shared"]
    assert await names() == ["alpha", "Beta", "gamma", "never", "shared", "unused"]


async def test_merge_moves_items_and_leaves_an_alias_which_undo_takes_back(
    rt: Runtime, client: AsyncClient, ada: User, as_ada: dict[str, str]
) -> None:
    async with rt.db.write() as session:
        both = await items.item(session, rt, ada, "k8s", "Kubernetes")
        one = await items.item(session, rt, ada, "k8s")
        source, target = (
            await items.tag(session, rt, ada, "k8s"),
            await items.tag(session, rt, ada, "Kubernetes"),
        )

    merged = await client.post(
        f"{TAGS}/merge",
        headers=as_ada,
        json={"target": str(target.id), "sources": [str(source.id)]},
    )
    assert (merged.status_code, merged.json()["usage_count"], merged.json()["aliases"]) == (
        200,
        2,
        ["k8s"],
    )
    typed = await client.post(TAGS, headers=as_ada, json={"name": "K8S"})
    assert (typed.status_code, typed.json()["id"]) == (200, str(target.id))
    kept = await client.patch(f"{TAGS}/{target.id}", headers=as_ada, json={"name": "K8s"})
    assert kept.json()["code"] == "TAG_NAME_RESERVED"

    undone = await client.post(f"{TAGS}/{target.id}/undo", headers=as_ada)
    assert (undone.status_code, undone.json()["usage_count"], undone.json()["aliases"]) == (
        200,
        1,
        [],
    )
    assert await _borne(rt) == {(both.id, source.id), (both.id, target.id), (one.id, source.id)}
    assert (await client.post(f"{TAGS}/{target.id}/undo", headers=as_ada)).json()[
        "code"
    ] == "NO_TAG_CHANGE"
    self_merge = await client.post(
        f"{TAGS}/merge",
        headers=as_ada,
        json={"target": str(target.id), "sources": [str(target.id)]},
    )
    assert (self_merge.status_code, self_merge.json()["code"]) == (422, "NOTHING_TO_MERGE")


@on_sqlite
async def test_revive_leaves_items_alone_and_undo_does_not(
    rt: Runtime, client: AsyncClient, ada: User, clock: ManualClock, as_ada: dict[str, str]
) -> None:
    async with rt.db.write() as session:
        bearer = await items.item(session, rt, ada, "old")
        tag = await items.tag(session, rt, ada, "old")
    await client.delete(f"{TAGS}/{tag.id}", headers=as_ada)
    await client.post(TAGS, headers=as_ada, json={"name": "old"})
    assert await _borne(rt) == set()
    assert (await client.post(f"{TAGS}/{tag.id}/undo", headers=as_ada)).json()["usage_count"] == 1
    assert await _borne(rt) == {(bearer.id, tag.id)}

    await client.delete(f"{TAGS}/{tag.id}", headers=as_ada)
    clock.advance(timedelta(hours=25).total_seconds())
    assert (await client.post(f"{TAGS}/{tag.id}/undo", headers=as_ada)).status_code == 409
    async with rt.db.write() as session:
        clock.advance(timedelta(days=2).total_seconds())
        assert await tag_changes.delete_expired_changes(session, rt.clock.now()) == 2


@on_sqlite
async def test_rename_frees_the_old_name_and_refuses_a_taken_one(
    client: AsyncClient, as_ada: dict[str, str]
) -> None:
    first, second = [
        (await client.post(TAGS, headers=as_ada, json={"name": name})).json()["id"]
        for name in ("one", "two")
    ]
    assert (await client.patch(f"{TAGS}/{first}", headers=as_ada, json={"name": "TWO"})).json()[
        "code"
    ] == "TAG_EXISTS"
    renamed = (
        await client.patch(
            f"{TAGS}/{first}", headers=as_ada, json={"name": "Three", "color": "#aabbcc"}
        )
    ).json()
    assert (renamed["name"], renamed["slug"], renamed["color"]) == ("Three", "three", "#AABBCC")
    assert (await client.post(TAGS, headers=as_ada, json={"name": "one"})).status_code == 201
    await client.delete(f"{TAGS}/{second}", headers=as_ada)
    assert (await client.patch(f"{TAGS}/{first}", headers=as_ada, json={"name": "two"})).json()[
        "code"
    ] == "TAG_NAME_RESERVED"


@on_sqlite
async def test_an_alias_can_be_deleted(
    rt: Runtime, client: AsyncClient, ada: User, as_ada: dict[str, str]
) -> None:
    async with rt.db.write() as session:
        source, target = (
            await items.tag(session, rt, ada, "a/b"),
            await items.tag(session, rt, ada, "c"),
        )
        await tag_changes.merge_tags(
            session, rt.ids, ada.id, target.id, [source.id], rt.clock.now()
        )
    assert (
        await client.delete(f"{TAGS}/{target.id}/aliases", headers=as_ada, params={"name": "A/B"})
    ).status_code == 204
    assert (
        await client.delete(f"{TAGS}/{target.id}/aliases", headers=as_ada, params={"name": "a/b"})
    ).json()["code"] == "ALIAS_NOT_FOUND"
    assert (await client.post(TAGS, headers=as_ada, json={"name": "a/b"})).json()["id"] == str(
        source.id
    )


@on_sqlite
async def test_shared_tags_are_changed_by_administrators(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, root: User, as_ada: dict[str, str]
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, tags=["Alpha"])
        as_root, as_bob = (
            by_key(await make.key(session, rt, root, *make.ALL)),
            by_key(await make.key(session, rt, bob)),
        )
        number = await session.scalar(select(Tag.id).where(Tag.key == "alpha"))
    path = f"{TAGS}/{number}"
    assert (await client.patch(path, headers=as_ada, json={"name": "Beta"})).status_code == 403
    assert (await client.patch(path, headers=as_bob, json={"name": "Beta"})).status_code == 404
    assert (await client.patch(path, headers=as_root, json={"name": "Beta"})).json()[
        "slug"
    ] == "alpha"
    assert (
        await client.post(TAGS, headers=as_ada, json={"name": "New", "scope": "shared"})
    ).status_code == 403
    assert (
        await client.post(TAGS, headers=as_root, json={"name": "New", "scope": "shared"})
    ).status_code == 201
    assert (
        await client.post(TAGS, headers=as_root, json={"name": "alpha", "scope": "shared"})
    ).status_code == 200
    deleted = [(await client.delete(path, headers=who)).status_code for who in (as_ada, as_bob)]
    assert deleted == [403, 404]
    assert (await client.delete(path, headers=as_root)).status_code == 204


async def test_many_who_make_the_same_tag_get_one(rt: Runtime, ada: User) -> None:
    async def make_it(number: int) -> int:
        for _ in range(20):
            try:
                async with rt.db.write() as session:
                    name = ["Team", "team", "TEAM"][number % 3]
                    return (
                        await personal_tags.create_tag(
                            session, rt.ids, ada.id, name, None, rt.clock.now()
                        )
                    ).tag.id
            except StoreBusy:
                continue
        raise AssertionError

    assert len(set(await asyncio.gather(*(make_it(number) for number in range(9))))) == 1


async def test_counts_stay_true_while_many_tag_and_merge(rt: Runtime, ada: User) -> None:
    """Tag, merge and undo concurrently; then every count must match the junction table."""
    async with rt.db.write() as session:
        rows = [(await items.item(session, rt, ada, "a")).id for _ in range(4)]
        tags = [await items.tag(session, rt, ada, name) for name in "abc"]
        numbers = [tag.id for tag in tags]

    async def busy(work: int) -> None:
        for step in range(4):
            try:
                async with rt.db.write() as session:
                    if work % 2:
                        item = await session.get_one(
                            Item, rows[(work + step) % 4], with_for_update={"key_share": True}
                        )
                        await set_item_tags(
                            session,
                            item,
                            [numbers[(work + step) % 3], numbers[step % 3]],
                            rt.clock.now(),
                        )
                    elif step % 2:
                        await tag_changes.undo_tag_change(
                            session, ada.id, numbers[work % 3], rt.clock.now()
                        )
                    else:
                        await tag_changes.merge_tags(
                            session,
                            rt.ids,
                            ada.id,
                            numbers[work % 3],
                            [numbers[(work + 1) % 3]],
                            rt.clock.now(),
                        )
            except (StoreBusy, TagNotFound, NoTagChange):
                continue

    await asyncio.gather(*(busy(work) for work in range(6)))

    async with rt.db.read() as reading:
        counted = {row.tag_id: row.number for row in (await reading.execute(_COUNTS)).all()}
        for tag in await reading.scalars(select(Tag).where(Tag.space == ada.id)):
            assert tag.usage_count == counted.get(tag.id, 0)
            assert tag.deleted_at is None or not tag.usage_count


_COUNTS = select(ItemTag.tag_id, func.count().label("number")).group_by(ItemTag.tag_id)


async def _borne(rt: Runtime) -> set[tuple[int, int]]:
    async with rt.db.read() as session:
        return {(row.item_id, row.tag_id) for row in await session.scalars(select(ItemTag))}


def test_the_default_colour() -> None:
    assert DEFAULT_COLOR == "#6B7280"
