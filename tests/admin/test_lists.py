"""Administrators find and delete any list.

The finding: no screen, call or command showed an administrator a list that was not theirs, so a
page published by a stranger could only be removed with SQL (security review, finding 2).
"""

from httpx import AsyncClient
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.lists.clients import creator, published

HTML = {"Accept": "text/html"}


async def _key(rt: Runtime, user: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, user))


async def test_a_list_is_found_by_name_title_host_and_owner(
    client: AsyncClient, rt: Runtime, ada: User, admin: dict[str, str]
) -> None:
    await published(
        client, await _key(rt, ada), "reading", "https://books.example/a", title="Books to read"
    )
    await published(
        client, creator(), "prizes", "https://evil-phish.example.net/login", title="Win a prize"
    )

    async def found(**asked: str) -> list[str]:
        response = await client.get("/api/v1/admin/lists", headers=admin, params=asked)
        assert response.status_code == 200, response.text
        return [link_list["slug"] for link_list in response.json()["items"]]

    assert await found() == ["prizes", "reading"]
    assert await found(q="evil-phish") == ["prizes"]
    assert await found(q="BOOKS") == ["reading"]
    assert await found(q="prizes") == ["prizes"]
    assert await found(q="prize nowhere") == []
    assert await found(q="100%_") == []
    assert await found(anonymous="true") == ["prizes"]
    assert await found(anonymous="false") == ["reading"]
    assert await found(status="draft") == []
    first = (await client.get("/api/v1/admin/lists", headers=admin, params={"limit": 1})).json()
    assert [link_list["slug"] for link_list in first["items"]] == ["prizes"]
    assert await found(limit="1", cursor=first["next_cursor"]) == ["reading"]
    (one,) = (await client.get("/api/v1/admin/lists?q=reading", headers=admin)).json()["items"]
    assert (one["owner_id"], one["owner_email"], one["hosts"]) == (
        str(ada.id),
        "ada@example.com",
        ["books.example"],
    )


async def test_removing_a_strangers_list_takes_its_page_down(
    client: AsyncClient, rt: Runtime, admin: dict[str, str]
) -> None:
    mine = creator()
    list_id = (await published(client, mine, "prizes", "https://evil.example/login"))["id"]

    removed = await client.delete(f"/api/v1/admin/lists/{list_id}", headers=admin)

    assert removed.status_code == 204
    for path in (
        "/prizes",
        "/prizes/1",
        "/prizes.rss",
        "/prizes.png",
        "/api/v1/public/lists/prizes",
    ):
        assert (await client.get(path)).status_code == 404, path
    assert (await client.get(f"/api/v1/lists/{list_id}", headers=mine)).status_code == 404
    gone = (await client.get("/api/v1/admin/lists?removed=true", headers=admin)).json()["items"]
    assert [link_list["id"] for link_list in gone] == [list_id]
    async with rt.db.read() as session:
        line = (
            await session.scalars(select(AuditEntry).where(AuditEntry.action == "list.deleted"))
        ).one()
    assert line.target == list_id


@on_sqlite
async def test_the_screen_finds_removes_and_restores(
    client: AsyncClient, browser: dict[str, str]
) -> None:
    list_id = (
        await published(client, creator(), "prizes", "https://evil.example/login", title="Win <b>")
    )["id"]
    path = f"/app/admin/lists/{list_id}"

    page = await client.get("/app/admin/lists?q=evil", headers=browser)
    removed = await client.post(f"{path}/remove", headers=browser)
    after = await client.get("/app/admin/lists?show=removed", headers=browser)

    assert "Win &lt;b&gt;" in page.text
    assert f'action="{path}/remove"' in page.text
    assert removed.headers["location"] == "/app/admin/lists"
    assert (await client.get("/prizes", headers=HTML)).status_code == 404
    assert f'action="{path}/undo"' in after.text
    await client.post(f"{path}/undo", headers=browser)
    assert (await client.get("/prizes", headers=HTML)).status_code == 200
    assert (
        "No matching lists"
        in (await client.get("/app/admin/lists?q=nowhere", headers=browser)).text
    )


@on_sqlite
async def test_the_public_page_offers_manage_to_those_who_may(
    client: AsyncClient, rt: Runtime, ada: User, bob: User, browser: dict[str, str]
) -> None:
    list_id = (await published(client, await _key(rt, ada), "reading"))["id"]
    offer = f'href="/app/lists/{list_id}"'

    async def shown(user: User) -> str:
        async with rt.db.write() as session:
            signed_in = by_cookie(rt, await make.cookie(session, rt, user))
        return (await client.get("/reading", headers=signed_in | HTML)).text

    assert offer in (await client.get("/reading", headers=browser)).text
    assert offer in await shown(ada)
    assert offer not in await shown(bob)
    assert offer not in (await client.get("/reading", headers=HTML)).text
    assert (await client.get("/reading", headers=HTML | {"X-API-Key": "wrong"})).status_code == 200
