"""The kinds of visibility: who finds a link, who may open it, and how it is stored."""

import pytest
from httpx import AsyncClient
from sqlalchemy import text

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.enums import Visibility
from refract.links.models import Link
from refract.links.schemas import LinkPatch
from tests import make
from tests.client import by_cookie, by_key, on_sqlite

PAGE = {"Accept": "text/html"}
RESTRICTED = [Visibility.SIGNED_IN, Visibility.TEAM, Visibility.PASSWORD, Visibility.SECURE]


async def _build_fields(
    session: WriteSession, rt: Runtime, manager: User, visibility: Visibility
) -> dict[str, str]:
    """Return the visibility of a new link, and its team or password where it needs one."""
    if visibility == Visibility.PASSWORD:
        return {"visibility": visibility, "password": "open sesame"}
    if visibility != Visibility.TEAM:
        return {"visibility": visibility}
    return {"visibility": visibility, "team": (await make.team(session, rt, manager)).slug}


@pytest.mark.parametrize("visibility", list(Visibility))
def test_what_is_stored_is_read_again(visibility: Visibility) -> None:
    assert Visibility.from_columns(*visibility.columns) == visibility


def test_old_code_takes_every_restricted_link_for_a_secure_one() -> None:
    assert {visibility.columns[0] for visibility in RESTRICTED} == {"secure"}


def test_an_audience_of_a_later_version_lets_in_nobody_new() -> None:
    assert Visibility.from_columns("secure", "guests") == Visibility.SECURE
    assert Visibility.from_columns("public", "signed-in") == Visibility.PUBLIC


async def test_everyone_signed_in_may_follow_a_signed_in_link(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(
            session,
            rt,
            ada,
            "https://example.com/plan",
            name="plan",
            visibility="signed-in",
            redirect_status=301,
        )
        as_bob, key = (
            by_cookie(rt, await make.cookie(session, rt, bob)),
            by_key(await make.key(session, rt, bob)),
        )
        assert await session.scalar(text("SELECT visibility FROM links")) == "secure"
        assert await session.scalar(text("SELECT audience FROM links")) == "signed-in"

    stranger = await client.get("/plan", headers=PAGE)
    assert (stranger.status_code, stranger.headers["location"]) == (302, "/auth/sign-in")
    cookie = {"Cookie": stranger.headers["set-cookie"].split(";")[0]}
    sign_in = (await client.get("/auth/sign-in", headers=PAGE | cookie)).text
    assert "/plan is restricted. Sign in to open it." in sign_in
    assert "is restricted" not in (await client.get("/auth/sign-in", headers=PAGE)).text
    for path in ("/plan", "/plan+", "/plan.qr", f"/{link.code}"):
        assert (await client.get(path)).status_code == 401
    for headers in (as_bob, key):
        followed = await client.get("/plan", headers=headers)
        assert (followed.status_code, followed.headers["location"]) == (
            301,
            "https://example.com/plan",
        )
        assert followed.headers["cache-control"] == "private, no-store"
    assert (await client.get("/plan+", headers=as_bob | PAGE)).status_code == 200
    assert (
        await client.get(f"/api/v1/links/{link.id}", headers=key)
    ).status_code == 404  # opening a link is not seeing its details
    assert (await client.get("/api/v1/links?owner=public", headers=key)).json()["items"] == []


@on_sqlite
async def test_a_name_that_somebody_may_not_open_is_not_offered_as_free(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    """Finding: "It is free. Make it yours?" stood below a secure link of somebody else."""
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="expenses", visibility="secure")
        as_bob = by_cookie(rt, await make.cookie(session, rt, bob)) | PAGE

    taken, free = [await client.get(path, headers=as_bob) for path in ("/expenses", "/nobodys")]

    assert (taken.status_code, free.status_code) == (404, 404)
    assert "Create /nobodys" in free.text
    assert "Create /expenses" not in taken.text


@on_sqlite
@pytest.mark.parametrize("status", [301, 308])
@pytest.mark.parametrize("visibility", list(Visibility))
async def test_browsers_keep_no_redirect_of_a_restricted_link(
    rt: Runtime, client: AsyncClient, ada: User, visibility: Visibility, status: int
) -> None:
    """Security review, Low: a 301 or 308 of a secure link stayed in the browser for 30 s."""
    async with rt.db.write() as session:
        given = await _build_fields(session, rt, ada, visibility)
        await make.link(session, rt, ada, name="plan", redirect_status=status, **given)
        mine = by_key(await make.key(session, rt, ada))

    kept = (await client.get("/plan", headers=mine)).headers["cache-control"]
    assert kept == ("private, no-store" if visibility in RESTRICTED else "private, max-age=30")


async def test_visibility_goes_through_edit_history_revert_and_undo(rt: Runtime, ada: User) -> None:
    who, space = make.who(ada), make.space(rt)

    async def change(visibility: Visibility) -> Link:
        async with rt.db.write() as session:
            return (
                await service.edit_link(
                    session, space, who, link.id, LinkPatch(visibility=visibility)
                )
            ).link

    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, visibility="signed-in")
    assert (await change(Visibility.SECURE)).effective_visibility == Visibility.SECURE
    assert (await change(Visibility.PUBLIC)).effective_visibility == Visibility.PUBLIC
    async with rt.db.write() as session:
        held = await service.undo_link(session, space, who, link.id)
        assert held.link.effective_visibility == Visibility.SECURE
        assert (held.link.visibility, held.link.audience) == ("secure", None)
    vetted = (await make.new_link(rt)).vetted
    async with rt.db.write() as session:
        held = await service.revert_link(session, space, who, link.id, 1, vetted)
        assert held.link.effective_visibility == Visibility.SIGNED_IN
        assert held.snapshot_before["visibility"] == "secure"  # as older code reads it


@on_sqlite
async def test_every_door_speaks_of_it_in_the_same_words(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        key, cookie = (
            by_key(await make.key(session, rt, ada)),
            by_cookie(rt, await make.cookie(session, rt, ada)) | PAGE,
        )
    made = (
        await client.post(
            "/api/v1/links",
            headers=key,
            json={"destination": "https://example.com/", "visibility": "signed-in"},
        )
    ).json()
    assert made["visibility"] == "signed-in"
    changed = await client.patch(
        f"/api/v1/links/{made['id']}", headers=key, json={"visibility": "secure"}
    )
    assert changed.json()["visibility"] == "secure"
    again = await client.patch(
        f"/api/v1/links/{made['id']}", headers=key, json={"visibility": "signed-in"}
    )
    assert again.json()["visibility"] == "signed-in"
    history = (await client.get(f"/api/v1/links/{made['id']}/history", headers=key)).json()["items"]
    assert history[0]["changes"]["visibility"] == {"from": "secure", "to": "signed-in"}
    assert "Signed-in" in (await client.get(f"/app/links/{made['id']}", headers=cookie)).text
    form = (await client.get(f"/app/links/{made['id']}/edit", headers=cookie)).text
    assert '<option value="signed-in" selected>' in form
    assert "only owners, people it’s shared with and administrators" in form
    found = {
        "destination": "https://example.com/",
        "visibility": "signed-in",
        "find_if_exists": True,
    }
    assert (await client.post("/api/v1/links", headers=key, json=found)).status_code == 200
    assert (
        await client.post("/api/v1/links", headers=key, json=found | {"visibility": "secure"})
    ).status_code == 201


@on_sqlite
@pytest.mark.parametrize(
    ("path", "offered"),
    [
        ("/free-name", True),
        ("/secret-name", False),
        ("/old-name", False),
        ("/not.a.name", False),
        ("/signin", False),
        ("/free-name/x", False),
    ],
)
async def test_a_404_page_offers_a_name_only_if_it_is_free(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, path: str, offered: bool
) -> None:
    """The name of another user's secure link was offered as available."""
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="secret-name", visibility="secure")
        cookie = by_cookie(rt, await make.cookie(session, rt, bob)) | PAGE
        reader = by_key(await make.key(session, rt, bob, make.READ_WRITE[0])) | PAGE
        old = await make.link(session, rt, ada, name="old-name", visibility="secure")
        await service.delete_link(session, make.who(ada), old.id, rt.clock.now())

    page = await client.get(path, headers=cookie)
    assert page.status_code == 404
    assert ("is available" in page.text) == offered
    assert "is available" not in (await client.get(path, headers=reader)).text


async def test_links_can_be_filtered_by_visibility(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        for visibility in Visibility:
            given = await _build_fields(session, rt, ada, visibility)
            await make.link(session, rt, ada, name=f"a-{visibility}", **given)
        key, cookie = (
            by_key(await make.key(session, rt, ada)),
            by_cookie(rt, await make.cookie(session, rt, ada)) | PAGE,
        )

    for visibility in Visibility:
        found = (await client.get(f"/api/v1/links?visibility={visibility}", headers=key)).json()[
            "items"
        ]
        assert [(one["names"], one["visibility"]) for one in found] == [
            ([f"a-{visibility}"], visibility)
        ]
    page = (await client.get("/app/links?visibility=signed-in", headers=cookie)).text
    assert "/a-signed-in" in page
    assert "/a-secure" not in page


async def test_members_of_the_teams_that_own_a_team_link_find_view_and_follow_it(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, cleo: User
) -> None:
    async with rt.db.write() as session:
        await make.team(session, rt, ada, bob, name="Crew")
        link = await make.link(session, rt, ada, name="plan", visibility="team", team="crew")
        as_ada, as_bob, as_cleo = [
            by_key(await make.key(session, rt, user)) for user in (ada, bob, cleo)
        ]
        assert await session.scalar(text("SELECT visibility FROM links")) == "secure"
        assert await session.scalar(text("SELECT audience FROM links")) == "team"

    assert (await client.get("/plan")).status_code == 401
    for headers, followed, viewed in ((as_ada, 302, 200), (as_bob, 302, 200), (as_cleo, 404, 404)):
        response = await client.get("/plan", headers=headers)
        assert response.status_code == followed
        if followed == 302:
            assert response.headers["cache-control"] == "private, no-store"
        assert (await client.get(f"/api/v1/links/{link.id}", headers=headers)).status_code == viewed
    found = await client.get("/api/v1/links?visibility=team", headers=as_bob)
    assert [(item["names"], item["visibility"]) for item in found.json()["items"]] == [
        (["plan"], "team")
    ]
    secure = await client.get("/api/v1/links?visibility=secure", headers=as_bob)
    assert secure.json()["items"] == []


@on_sqlite
async def test_only_a_link_of_a_team_can_be_for_a_team(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        await make.team(session, rt, ada, name="Crew")
        link = await make.link(session, rt, ada, name="mine")
        key = by_key(await make.key(session, rt, ada))
    path = f"/api/v1/links/{link.id}"

    new = {"destination": "https://example.com/", "visibility": "team"}
    refused = [
        await client.post("/api/v1/links", headers=key, json=new),
        await client.patch(path, headers=key, json={"visibility": "team"}),
    ]
    assert [response.json()["code"] for response in refused] == ["TEAM_REQUIRED"] * 2
    await client.post(f"{path}/teams", headers=key, json={"team": "crew"})
    changed = await client.patch(path, headers=key, json={"visibility": "team"})
    assert changed.json()["visibility"] == "team"
