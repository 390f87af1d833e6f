"""Ownership needs acceptance.

The finding: Eve created a link to a phishing page, transferred it to Bob and left; Bob was its only
owner without having agreed.
"""

from datetime import timedelta

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User, UserStatus
from refract.links import service
from refract.links.jobs import PurgeInvitations, purge_invitations
from refract.links.models import Link, LinkInvitation, LinkOwner
from tests import make
from tests.client import by_cookie, by_key
from tests.people import Headers

MINE = "/api/v1/me/invitations"
PAGE = {"Accept": "text/html"}


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        return await make.link(session, rt, ada, name="frame-up")


async def _owners(rt: Runtime, link: Link) -> dict[int, bool]:
    async with rt.db.read() as session:
        rows = await session.scalars(select(LinkOwner).where(LinkOwner.link_id == link.id))
        return {row.user_id: row.is_primary for row in rows}


async def _invite(
    client: AsyncClient, headers: Headers, link: Link, person: User, what: str = "owners"
) -> str:
    answer = await client.post(
        f"/api/v1/links/{link.id}/{what}", headers=headers, json={"email": person.email}
    )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["invitation"]["id"])


@pytest.mark.parametrize(
    ("what", "after"), [("owners", (True, False)), ("transfer", (False, True))]
)
async def test_nobody_owns_a_link_before_they_accept(  # noqa: PLR0917 - fixtures
    client: AsyncClient,
    rt: Runtime,
    link: Link,
    ada: User,
    bob: User,
    as_ada: Headers,
    as_bob: Headers,
    what: str,
    after: tuple[bool, bool],
) -> None:
    number = await _invite(client, as_ada, link, bob, what)
    assert await _owners(rt, link) == {ada.id: True}
    (mine,) = (await client.get(MINE, headers=as_bob)).json()["items"]
    assert (mine["id"], mine["short_url"], mine["inviter"], mine["email"]) == (
        number,
        "http://go.test/frame-up",
        "Ada",
        None,
    )

    accepted = await client.post(f"{MINE}/{number}/accept", headers=as_bob)

    assert accepted.status_code == 200
    assert await _owners(rt, link) == {ada.id: after[0], bob.id: after[1]}
    assert (await client.get(MINE, headers=as_bob)).json()["items"] == []
    assert (await client.post(f"{MINE}/{number}/accept", headers=as_bob)).status_code == 404
    async with rt.db.read() as session:
        told = list(
            await session.execute(
                select(AuditEntry.action, AuditEntry.actor_id).order_by(AuditEntry.id)
            )
        )
    done = "link.owner_added" if what == "owners" else "link.transferred"
    assert [tuple(row) for row in told] == [("link.owner_invited", ada.id), (done, bob.id)]


async def test_declining_and_withdrawing_leave_nothing(
    client: AsyncClient,
    rt: Runtime,
    link: Link,
    ada: User,
    bob: User,
    as_ada: Headers,
    as_bob: Headers,
) -> None:
    first = await _invite(client, as_ada, link, bob)
    assert (await client.post(f"{MINE}/{first}/decline", headers=as_bob)).status_code == 204
    second = await _invite(client, as_ada, link, bob)
    of_link = f"/api/v1/links/{link.id}/invitations"
    assert [
        (one["id"], one["email"])
        for one in (await client.get(of_link, headers=as_ada)).json()["items"]
    ] == [(second, bob.email)]

    assert (await client.delete(f"{of_link}/{second}", headers=as_ada)).status_code == 204

    assert (await client.post(f"{MINE}/{second}/accept", headers=as_bob)).status_code == 404
    assert await _owners(rt, link) == {ada.id: True}


async def test_inviting_again_renews_and_may_change_the_offer(
    client: AsyncClient,
    rt: Runtime,
    link: Link,
    ada: User,
    bob: User,
    as_ada: Headers,
    as_bob: Headers,
) -> None:
    first = await _invite(client, as_ada, link, bob)
    rt.clock.advance(10 * 86_400)  # type: ignore[attr-defined]
    assert await _invite(client, as_ada, link, bob, "transfer") == first
    (mine,) = (await client.get(MINE, headers=as_bob)).json()["items"]
    assert mine["role"] == "primary"
    rt.clock.advance(10 * 86_400)  # type: ignore[attr-defined]
    assert (await client.post(f"{MINE}/{first}/accept", headers=as_bob)).status_code == 200


async def test_invitations_expire_in_14_days_and_a_job_removes_them(
    client: AsyncClient, rt: Runtime, link: Link, bob: User, as_ada: Headers, as_bob: Headers
) -> None:
    number = await _invite(client, as_ada, link, bob)
    rt.clock.advance(timedelta(days=14).total_seconds())  # type: ignore[attr-defined]
    assert (await client.get(MINE, headers=as_bob)).json()["items"] == []
    assert (await client.post(f"{MINE}/{number}/accept", headers=as_bob)).status_code == 404

    await purge_invitations(rt, PurgeInvitations())

    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(LinkInvitation)) == 0


async def test_an_offer_holds_only_while_it_could_still_be_made(
    client: AsyncClient,
    rt: Runtime,
    link: Link,
    ada: User,
    bob: User,
    as_ada: Headers,
    as_bob: Headers,
) -> None:
    number = await _invite(client, as_ada, link, bob, "transfer")
    async with rt.db.write() as session:
        eve = await make.person(session, rt, "eve")
        await service.transfer_link(session, make.who(ada), link.id, eve.email, rt.clock.now())

    assert (
        await client.post(f"{MINE}/{number}/accept", headers=as_bob)
    ).status_code == 404  # ada is no longer the primary owner

    async with rt.db.write() as session:
        await service.transfer_link(session, make.who(eve), link.id, ada.email, rt.clock.now())
        (await session.get_one(User, ada.id)).status = UserStatus.SUSPENDED
    assert (await client.post(f"{MINE}/{number}/accept", headers=as_bob)).status_code == 404
    assert (await client.get(MINE, headers=as_bob)).json()["items"] == []


async def test_an_administrator_assigns_at_once(
    client: AsyncClient, rt: Runtime, link: Link, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        headers = by_key(await make.key(session, rt, root, *make.ALL))
        own = await make.link(session, rt, root, name="mine")

    answer = await client.post(
        f"/api/v1/links/{link.id}/owners", headers=headers, json={"email": bob.email}
    )
    assert (answer.status_code, await _owners(rt, link)) == (201, {ada.id: True, bob.id: False})
    answer = await client.post(
        f"/api/v1/links/{link.id}/transfer", headers=headers, json={"email": bob.email}
    )
    assert (answer.status_code, await _owners(rt, link)) == (200, {ada.id: False, bob.id: True})

    mine = await client.post(
        f"/api/v1/links/{own.id}/owners", headers=headers, json={"email": bob.email}
    )
    assert (mine.status_code, await _owners(rt, own)) == (
        202,
        {root.id: True},
    )  # an administrator's own link needs an invitation too


async def test_a_link_has_a_bounded_number_of_open_invitations(
    client: AsyncClient, rt: Runtime, link: Link, ada: User
) -> None:
    async with rt.db.write() as session:
        people = [await make.person(session, rt, f"p{number}") for number in range(21)]
        headers = by_key(await make.key(session, rt, ada))
    for person in people[:20]:
        await _invite(client, headers, link, person)
    past = await client.post(
        f"/api/v1/links/{link.id}/owners", headers=headers, json={"email": people[20].email}
    )
    assert (past.status_code, past.json()["code"]) == (409, "TOO_MANY_INVITATIONS")


async def test_pages_invite_answer_and_withdraw(
    client: AsyncClient, rt: Runtime, link: Link, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        hers, his = [by_cookie(rt, await make.cookie(session, rt, person)) for person in (ada, bob)]
    page = f"/app/links/{link.id}"
    await client.post(f"{page}/owners", headers=hers, data={"email": bob.email})
    assert "Invited" in (await client.get(f"{page}?tab=people", headers=hers | PAGE)).text
    assert "/app/invitations" in (await client.get("/", headers=his | PAGE)).text
    assert (
        ", 1 open invitation<"
        in (await client.get("/app/invitations/waiting", headers=his | PAGE)).text
    )
    offered = (await client.get("/app/invitations", headers=his | PAGE)).text
    assert "go.test/frame-up" in offered
    async with rt.db.read() as session:
        number = await session.scalar(select(LinkInvitation.id))

    accepted = await client.post(f"/app/invitations/{number}/accept", headers=his)

    assert accepted.headers["location"] == page
    assert await _owners(rt, link) == {ada.id: True, bob.id: False}
    assert "No invitations" in (await client.get("/app/invitations", headers=his | PAGE)).text


async def test_whom_a_link_is_shared_with_may_leave(
    client: AsyncClient, rt: Runtime, link: Link, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        await service.share_link(session, make.who(ada), link.id, bob.email, rt.clock.now())
        his = by_cookie(rt, await make.cookie(session, rt, bob))
    page = f"/app/links/{link.id}"
    people = await client.get(f"{page}?tab=people", headers=his | PAGE)
    assert "Remove from my links" in people.text

    left = await client.post(f"{page}/shares/{bob.id}/remove", headers=his)

    assert left.headers["location"] == "/app/links?owner=shared"
    assert (await client.get(page, headers=his | PAGE)).status_code == 404


async def test_an_account_that_goes_takes_its_invitations_along(
    client: AsyncClient, rt: Runtime, link: Link, bob: User, as_ada: Headers
) -> None:
    await _invite(client, as_ada, link, bob)
    async with rt.db.write() as session:
        await service.erase_invitations(session, bob.id)
        assert await session.scalar(select(func.count()).select_from(LinkInvitation)) == 0
