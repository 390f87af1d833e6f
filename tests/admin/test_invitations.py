"""Administration of invitations and of sign-in links for people."""

import re

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import LOCAL_ISSUER, AuditEntry, Scope, User, UserStatus
from refract.web.models import StoredResponse
from tests import make
from tests.client import by_key, on_sqlite
from tests.people import Headers

API = "/api/v1/admin/invitations"
PAGE = "/app/admin/invitations"
DAY = 86_400
LINK = re.compile(r"<code>(http://go\.test/auth/[a-z-]+/[\w-]{43})</code>")


async def test_programs_invite_list_renew_and_revoke(
    client: AsyncClient, admin: Headers, root: User, clock: ManualClock
) -> None:
    body = {"name": "Grace", "email": "grace@example.com", "note": "Welcome", "valid_days": 2}
    made = await client.post(API, headers=admin, json=body)
    assert made.status_code == 201
    invitation = made.json()
    assert invitation["url"].startswith("http://go.test/auth/invitation/")
    assert (invitation["state"], invitation["delivery"]) == ("pending", None)
    assert invitation["inviter_id"] == str(root.id)

    renewed = (await client.post(f"{API}/{invitation['id']}/link", headers=admin)).json()
    assert renewed["url"] != invitation["url"]
    second = (await client.post(API, headers=admin, json={"role": "admin"})).json()
    assert (await client.delete(f"{API}/{second['id']}", headers=admin)).status_code == 204
    assert (await client.delete(f"{API}/{second['id']}", headers=admin)).status_code == 404
    clock.advance(2 * DAY)

    first = (await client.get(API, headers=admin, params={"limit": 1})).json()
    rest = (await client.get(API, headers=admin, params={"cursor": first["next_cursor"]})).json()
    listed = [*first["items"], *rest["items"]]
    assert [(row["id"], row["state"], row["role"]) for row in listed] == [
        (second["id"], "revoked", "admin"),
        (invitation["id"], "expired", "user"),
    ]
    assert not [row for row in listed if "url" in row]


@on_sqlite
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"email": "no address"}, "email"),
        ({"email": "a@b\nBcc: c@example.com"}, "email"),
        ({"name": "ada@example.com"}, "name"),
        ({"role": "owner"}, "role"),
        ({"valid_days": 0}, "valid_days"),
        ({"valid_days": 31}, "valid_days"),
        ({"note": "x" * 501}, "note"),
        ({"other": 1}, "other"),
    ],
)
async def test_bad_invitations_are_refused(
    client: AsyncClient, admin: Headers, body: dict[str, object], field: str
) -> None:
    answer = await client.post(API, headers=admin, json=body)
    assert answer.status_code == 422
    assert [error["field"].partition(".")[0] for error in answer.json()["errors"]] == [field]


@on_sqlite
async def test_a_stored_response_does_not_contain_the_link(
    rt: Runtime, client: AsyncClient, admin: Headers
) -> None:
    headers = admin | {"Idempotency-Key": "once"}
    url = (await client.post(API, headers=headers, json={})).json()["url"]
    again = (await client.post(API, headers=headers, json={})).json()
    assert again.get("url") != url
    async with rt.db.read() as session:
        stored = await session.scalars(select(StoredResponse))
        assert not [row for row in stored if url.rsplit("/", 1)[1] in repr(vars(row))]


@on_sqlite
async def test_the_page_shows_a_link_once(
    client: AsyncClient, browser: Headers, root: User
) -> None:
    assert "No invitations yet" in (await client.get(PAGE, headers=browser)).text
    assert f'href="{PAGE}"' in (await client.get("/app/admin/people", headers=browser)).text
    form = {"name": "Grace", "email": "", "role": "user", "valid_days": "30", "note": ""}
    made = await client.post(PAGE, headers=browser, data=form)
    assert made.status_code == 200
    (url,) = LINK.findall(made.text)
    assert f'data-copy="{url}"' in made.text

    listed = (await client.get(PAGE, headers=browser)).text
    assert "Grace" in listed
    assert url not in listed
    (number,) = set(re.findall(rf"{PAGE}/(\d+)/revoke", listed))
    (second,) = LINK.findall((await client.post(f"{PAGE}/{number}/link", headers=browser)).text)
    assert second != url
    assert (await client.post(f"{PAGE}/{number}/revoke", headers=browser)).status_code == 303
    revoked = (await client.get(PAGE, headers=browser)).text
    assert "Revoked" in revoked
    assert f"{number}/revoke" not in revoked
    for step in ("link", "revoke"):
        late = await client.post(f"{PAGE}/{number}/{step}", headers=browser)
        assert late.status_code == 404
        assert 'role="alert"' in late.text


@on_sqlite
async def test_the_form_keeps_what_was_typed(
    client: AsyncClient, browser: Headers, ada: User
) -> None:
    form = {"name": "Grace", "email": "nonsense", "role": "admin", "valid_days": "1", "note": "Hi"}
    wrong = await client.post(PAGE, headers=browser, data=form)
    assert wrong.status_code == 422
    assert "Enter an email address, like ada@example.com." in wrong.text
    assert 'value="Grace"' in wrong.text
    taken = await client.post(PAGE, headers=browser, data=form | {"email": ada.email})
    assert taken.status_code == 409
    assert "already an account with the email" in taken.text
    assert 'value="Hi"' in taken.text


@on_sqlite
async def test_the_page_needs_as_many_queries_for_one_as_for_many(
    rt: Runtime, client: AsyncClient, admin: Headers, browser: Headers
) -> None:
    counts = []
    for number in (1, 20):
        for _ in range(number):
            await client.post(API, headers=admin, json={})
        asked: list[str] = []
        stop = count_statements(rt.db.read_engine, asked.append)
        assert (await client.get(PAGE, headers=browser)).status_code == 200
        stop()
        counts.append(len(asked))
    assert counts[0] > 0
    assert counts[0] == counts[1]


@on_sqlite
async def test_a_sign_in_link_for_somebody_signs_them_in_once(
    rt: Runtime, client: AsyncClient, clock: ManualClock, browser: Headers, root: User
) -> None:
    async with rt.db.write() as session:
        grace = await make.person(session, rt, "grace", issuer=LOCAL_ISSUER, email="")
    people = (await client.get("/app/admin/people", headers=browser)).text
    action = f"/app/admin/people/{grace.id}/signin-link"
    assert f'action="{action}"' in people
    (url,) = LINK.findall((await client.post(action, headers=browser)).text)
    path = url.removeprefix("http://go.test")
    assert "Grace" in (await client.get(path)).text
    origin = {"Origin": rt.settings.public_url}
    clock.advance(60)
    assert (await client.post(path, headers=origin)).status_code == 303
    async with rt.db.read() as session:
        assert (await session.get_one(User, grace.id)).last_sync_at == clock.now()
        made = select(AuditEntry).where(AuditEntry.action == "signin_link.made")
        (entry,) = await session.scalars(made)
    assert (entry.actor_id, entry.target) == (root.id, str(grace.id))


@on_sqlite
async def test_no_sign_in_link_for_accounts_of_a_provider_or_suspended_ones(
    rt: Runtime, client: AsyncClient, browser: Headers, ada: User
) -> None:
    async with rt.db.write() as session:
        gone = await make.person(
            session, rt, "gone", issuer=LOCAL_ISSUER, status=UserStatus.SUSPENDED
        )
    people = (await client.get("/app/admin/people", headers=browser)).text
    assert "signin-link" not in people
    for user in (ada, gone):
        refused = await client.post(f"/app/admin/people/{user.id}/signin-link", headers=browser)
        assert refused.status_code == 409
        assert not LINK.findall(refused.text)


@on_sqlite
async def test_a_key_needs_the_scope_account_for_a_sign_in_link(
    rt: Runtime, client: AsyncClient, root: User
) -> None:
    """A session can create keys and delete the account, which the scope `admin` can't."""
    async with rt.db.write() as session:
        grace = await make.person(session, rt, "grace", issuer=LOCAL_ISSUER)
        weak = by_key(await make.key(session, rt, root, Scope.READ, Scope.WRITE, Scope.ADMIN))
    answer = await client.post(f"/app/admin/people/{grace.id}/signin-link", headers=weak)
    assert answer.status_code == 403
