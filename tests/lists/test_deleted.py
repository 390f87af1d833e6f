"""Deleted lists: the name is reserved for 24 hours, unless its owner releases it (SPEC 20).

Before, a deleted list released its name immediately and could not be restored.
"""

from datetime import timedelta

from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, Scope, User
from refract.lists.jobs import ReleaseNames, release_names
from refract.names.models import Name
from tests import make
from tests.client import by_key, on_sqlite
from tests.lists.clients import code, creator, published

HTML = {"Accept": "text/html"}


async def _key(rt: Runtime, user: User, *, admin: bool = False) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, user, *(make.ALL if admin else ())))


async def test_a_deleted_list_keeps_its_name_for_a_day(
    client: AsyncClient, rt: Runtime, clock: ManualClock, ada: User
) -> None:
    mine = await _key(rt, ada)
    found = await published(client, mine, "reading")

    await client.delete(f"/api/v1/lists/{found['id']}", headers=mine)

    assert (await client.get("/reading", headers=HTML)).status_code == 404
    assert (await client.get("/api/v1/names/reading?kind=list")).json()["available"] is False
    assert (
        "/reading" not in (await client.get("/readin", headers=HTML)).text
    )  # nor offered to those who mistype
    clock.advance(24 * 3600 - 1)
    await release_names(rt, ReleaseNames())
    assert (await client.get("/api/v1/names/reading?kind=list")).json()["available"] is False
    clock.advance(1)
    await release_names(rt, ReleaseNames())
    assert (await client.get("/api/v1/names/reading?kind=list")).json()["available"] is True
    assert code(await client.post(f"/api/v1/lists/{found['id']}/undo", headers=mine)) == (
        409,
        "NOTHING_TO_UNDO",
    )


async def test_undo_brings_every_edition_back_under_the_name(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    mine = await _key(rt, ada)
    first = await published(client, mine, "reading")
    second = (await client.post(f"/api/v1/lists/{first['id']}/editions", headers=mine)).json()
    await client.post(f"/api/v1/lists/{second['id']}/publish", headers=mine)
    await client.delete(f"/api/v1/lists/{second['id']}", headers=mine)

    back = await client.post(f"/api/v1/lists/{second['id']}/undo", headers=mine)

    assert (back.status_code, back.json()["slug"]) == (200, "reading")
    for path in ("/reading", "/reading?edition=1"):
        assert (await client.get(path, headers=HTML)).status_code == 200
    assert code(await client.post(f"/api/v1/lists/{second['id']}/undo", headers=mine)) == (
        409,
        "NOTHING_TO_UNDO",
    )


async def test_its_owner_may_release_the_name(
    client: AsyncClient, rt: Runtime, ada: User, bob: User
) -> None:
    mine, theirs = await _key(rt, ada), await _key(rt, bob)
    found = await published(client, mine, "reading")
    path = f"/api/v1/lists/{found['id']}"
    assert code(await client.post(f"{path}/release", headers=mine)) == (409, "NOTHING_TO_UNDO")
    await client.delete(path, headers=mine)

    assert code(await client.post(f"{path}/release", headers=theirs)) == (404, "LIST_NOT_FOUND")
    assert (await client.post(f"{path}/release", headers=mine)).status_code == 204
    assert (await published(client, theirs, "reading"))["slug"] == "reading"
    assert code(await client.post(f"{path}/undo", headers=mine)) == (409, "SLUG_TAKEN")


@on_sqlite
async def test_a_released_name_that_is_still_free_is_taken_back_by_undo(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    mine = await _key(rt, ada)
    found = await published(client, mine, "reading")
    path = f"/api/v1/lists/{found['id']}"
    await client.delete(path, headers=mine)
    await client.post(f"{path}/release", headers=mine)

    assert (await client.post(f"{path}/undo", headers=mine)).status_code == 200
    assert (await client.get("/reading", headers=HTML)).status_code == 200


@on_sqlite
async def test_the_pages_offer_undo_and_release(client: AsyncClient) -> None:
    mine = creator()
    found = await published(client, mine, "reading", title="Books")
    path = f"/app/lists/{found['id']}"

    deleted = await client.post(f"{path}/delete", headers=mine | HTML)
    page = await client.get("/app/lists", headers=mine | HTML)

    assert (deleted.status_code, deleted.headers["location"]) == (303, "/app/lists")
    assert f'action="{path}/undo"' in page.text
    assert f'action="{path}/release"' in page.text
    assert (await client.post(f"{path}/undo", headers=mine | HTML)).headers["location"] == path
    assert (await client.get("/reading", headers=HTML)).status_code == 200
    await client.post(f"{path}/delete", headers=mine | HTML)
    assert (await client.post(f"{path}/release", headers=mine | HTML)).headers[
        "location"
    ] == "/app/lists"
    assert (await client.get("/api/v1/names/reading?kind=list")).json()["available"] is True


@on_sqlite
async def test_the_next_edition_of_a_deleted_list_takes_the_name_back(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    mine = await _key(rt, ada)
    first = await published(client, mine, "reading")
    second = (await client.post(f"/api/v1/lists/{first['id']}/editions", headers=mine)).json()
    await client.delete(f"/api/v1/lists/{first['id']}", headers=mine)

    await client.post(f"/api/v1/lists/{second['id']}/publish", headers=mine)

    seconds = timedelta(days=2).total_seconds()
    rt.clock.advance(seconds)  # type: ignore[attr-defined]  # a test clock
    await release_names(rt, ReleaseNames())
    assert (await client.get("/reading", headers=HTML)).status_code == 200


async def test_what_an_administrator_removed_its_maker_cannot_bring_back(
    client: AsyncClient, rt: Runtime, ada: User, root: User
) -> None:
    mine, admin = await _key(rt, ada), await _key(rt, root, admin=True)
    found = await published(client, mine, "reading")
    edition = (await client.post(f"/api/v1/lists/{found['id']}/editions", headers=mine)).json()

    removed = await client.delete(f"/api/v1/admin/lists/{found['id']}", headers=admin)

    assert removed.status_code == 204
    assert (await client.get("/reading", headers=HTML)).status_code == 404
    path = f"/api/v1/lists/{found['id']}"
    assert code(await client.post(f"{path}/undo", headers=mine)) == (
        403,
        "REMOVED_BY_ADMIN",
    )
    assert code(await client.post(f"{path}/release", headers=mine)) == (
        403,
        "REMOVED_BY_ADMIN",
    )
    assert code(await client.post(f"/api/v1/lists/{edition['id']}/publish", headers=mine)) == (
        404,
        "LIST_NOT_FOUND",
    )
    back = await client.post(f"/api/v1/admin/lists/{found['id']}/undo", headers=admin)
    assert back.status_code == 200
    assert (await client.get("/reading", headers=HTML)).status_code == 200
    async with rt.db.read() as session:
        actions = list(
            await session.scalars(select(AuditEntry.action).where(AuditEntry.actor_id == root.id))
        )
    assert {"list.deleted", "list.restored"} <= set(actions)


async def test_deleting_an_account_frees_its_names_at_once(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        mine = by_key(await make.key(session, rt, ada, Scope.READ, Scope.WRITE, Scope.ACCOUNT))
    gone = await published(client, mine, "reading")
    await published(client, mine, "listening")
    await client.delete(f"/api/v1/lists/{gone['id']}", headers=mine)

    assert (await client.delete("/api/v1/me", headers=mine)).status_code == 204

    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(Name)) == 0


async def test_no_door_calls_a_deleted_list_published(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    """The finding: `POST /resolve` and the QR code still knew its name."""
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
    mine, theirs = await _key(rt, ada), await _key(rt, root, admin=True)
    found = await published(client, mine, "reading")
    paths = ("reading", "reading/1", "reading.qr", "reading.rss", "reading?edition=1")

    async def ask(path: str) -> tuple[str, int]:
        said = (await client.post("/api/v1/resolve", headers=mine, json={"path": path})).json()
        return said["outcome"], (await client.get(f"/{path}")).status_code

    assert [await ask(path) for path in paths] == [
        ("list", 200),
        ("redirect", 302),
        ("qr", 200),
        ("list", 200),
        ("list", 200),
    ]
    assert await ask("reading/9") == ("not_found", 404)

    assert (
        await client.delete(f"/api/v1/admin/lists/{found['id']}", headers=theirs)
    ).status_code == 204
    assert {await ask(path) for path in paths} == {("not_found", 404)}

    assert (
        await client.post(f"/api/v1/admin/lists/{found['id']}/undo", headers=theirs)
    ).status_code == 200
    assert await ask("reading") == ("list", 200)
