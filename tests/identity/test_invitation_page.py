"""The page of an invitation: who invites to what, and an account after a name was entered."""

import re
from pathlib import Path

import pytest
from httpx import AsyncClient, Response
from sqlalchemy import func, select

from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from refract.identity.authentication import SESSION_COOKIE
from refract.identity.invitations import service
from refract.identity.invitations.schemas import AccountInvitationCreate
from refract.identity.models import User
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.conftest import make_settings

pytestmark = on_sqlite
PAGE = {"Accept": "text/html"}
HOSTILE = '"><script>alert(1)</script>'


async def _invite(rt: Runtime, by: User, **given: object) -> str:
    """Return the path of a new invitation."""
    async with rt.db.write() as session:
        new = AccountInvitationCreate.model_validate(given)
        _, url = await service.create_invitation(session, rt, by, new)
    assert url is not None
    return url.removeprefix(rt.settings.public_url)


async def _accept(rt: Runtime, client: AsyncClient, path: str, name: str) -> Response:
    origin = {"Origin": rt.settings.public_url}
    return await client.post(path, headers=PAGE | origin, data={"name": name})


async def _count_people(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(User)) or 0


async def test_it_says_who_invites_to_what_and_signs_the_new_person_in(
    rt: Runtime, client: AsyncClient, root: User
) -> None:
    path = await _invite(rt, root, name="Grace", email="grace@example.com", note=HOSTILE)
    preview = await client.get(path, headers=PAGE)  # of a chat, then a person
    page = await client.get(path, headers=PAGE)
    assert (preview.status_code, page.status_code) == (200, 200)
    assert "Root invites you to Refract" in page.text
    assert 'value="Grace"' in page.text
    assert "grace@example.com" in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert "<script>alert" not in page.text
    assert '<meta name="referrer" content="no-referrer">' in page.text

    done = await _accept(rt, client, path, "  Grace \u202e Hopper ")

    assert (done.status_code, done.headers["location"]) == (303, "/")
    cookie = re.search(rf"{SESSION_COOKIE.get_name(rt)}=([^;]+)", str(done.headers))
    assert cookie
    me = (await client.get("/api/v1/me", headers=by_cookie(rt, cookie[1]))).json()
    assert (me["display_name"], me["email"], me["role"]) == (
        "Grace Hopper",
        "grace@example.com",
        "user",
    )


async def test_a_used_link_says_what_to_do(rt: Runtime, client: AsyncClient, root: User) -> None:
    path = await _invite(rt, root)
    assert (await _accept(rt, client, path, "Grace")).status_code == 303
    for answer in (
        await client.get(path, headers=PAGE),
        await _accept(rt, client, path, "Grace"),
    ):
        assert answer.status_code == 404
        assert "Ask the person who invited you for a new one." in answer.text
    assert (await client.get(path)).json()["code"] == "INVITATION_LINK_EXPIRED"
    assert await _count_people(rt) == 2


@pytest.mark.parametrize("name", ["", " \u200b ", "grace@example.com", "x" * 101])
async def test_a_name_that_is_none_is_refused_and_uses_nothing_up(
    rt: Runtime, client: AsyncClient, root: User, name: str
) -> None:
    path = await _invite(rt, root)
    answer = await _accept(rt, client, path, name)
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text
    assert await _count_people(rt) == 1
    assert (await _accept(rt, client, path, "Grace")).status_code == 303


async def test_a_form_of_another_site_creates_nothing(
    rt: Runtime, client: AsyncClient, root: User
) -> None:
    path = await _invite(rt, root)
    foreign = {"Origin": "https://evil.example"}
    answer = await client.post(path, headers=PAGE | foreign, data={"name": "Grace"})
    assert answer.status_code == 403
    assert await _count_people(rt) == 1


async def test_somebody_signed_in_is_told_so(
    rt: Runtime, client: AsyncClient, root: User, ada: User
) -> None:
    path = await _invite(rt, root)
    async with rt.db.write() as session:
        own, other = [
            by_cookie(rt, await make.cookie(session, rt, user)) | PAGE for user in (root, ada)
        ]
    mine = (await client.get(path, headers=own)).text
    assert "You created this invitation." in mine
    theirs = (await client.get(path, headers=other)).text
    assert "You’re already signed in as Ada." in theirs
    assert "Create another account" in theirs


async def test_looking_and_accepting_count_as_steps_of_a_sign_in(
    rt: Runtime, client: AsyncClient, root: User
) -> None:
    path = await _invite(rt, root)
    limit = rt.settings.sign_ins_per_minute
    assert limit is not None
    answers = [(await client.get(path, headers=PAGE)).status_code for _ in range(limit + 1)]
    assert answers == [200] * limit + [429]
    assert (await _accept(rt, client, path, "Grace")).status_code == 429


class TestWithProvider:
    """Where people sign in with a provider, there are no invitations."""

    @pytest.fixture
    def settings(self, database: str, tmp_path: Path) -> Settings:
        work = Issuer(url="https://id.test", client_id="refract")
        return make_settings(tmp_path / "data", database_url=database, issuers={"work": work})

    async def test_there_are_none(self, rt: Runtime, client: AsyncClient, root: User) -> None:
        async with rt.db.write() as session:
            key = {"X-API-Key": await make.key(session, rt, root, *make.ALL)}
        made = await client.post("/api/v1/admin/invitations", headers=key, json={})
        assert (made.status_code, made.json()["code"]) == (403, "INVITATIONS_DISABLED")
        token = "A" * 43
        for answer in (
            await client.get(f"/auth/invitation/{token}", headers=PAGE),
            await _accept(rt, client, f"/auth/invitation/{token}", "Grace"),
        ):
            assert answer.status_code == 403
        page = (await client.get("/app/admin/invitations", headers=key | PAGE)).text
        assert "People sign in with your identity provider" in page
        assert "Create invitation" not in page
        assert (
            "/app/admin/invitations"
            not in (await client.get("/app/admin/people", headers=key | PAGE)).text
        )
