"""Attacks on authentication and authorization, none of which succeeds."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import BrowserSession, Scope, User, UserRole, UserStatus
from refract.links.models import Link, LinkOwner
from refract.registry import build_worker
from refract.web import csrf
from tests import make
from tests.access.identities import Who
from tests.access.matrix import FORBIDDEN, ROWS, SIGN_IN
from tests.access.objects import absent_path
from tests.client import by_cookie, by_key, client_of, on_sqlite

PAGE = {"Accept": "text/html"}


async def _ada(rt: Runtime, **given: Any) -> tuple[User, str]:
    """Somebody with a browser."""
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada", **given)
        return ada, await make.cookie(session, rt, ada)


# -- whose address is it


@on_sqlite
@pytest.mark.parametrize(
    "header",
    [
        "Host",
        "X-Forwarded-Host",
        "X-Forwarded-Server",
        "Forwarded",
        "X-Original-URL",
        "X-Rewrite-URL",
    ],
)
async def test_no_header_says_where_we_live(rt: Runtime, client: AsyncClient, header: str) -> None:
    """Absolute URLs use the setting alone, so a forged Host header can't poison caches or mails."""
    ada, cookie = await _ada(rt)
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="road")
        await make.link(session, rt, ada, name="hidden", visibility="secure")
    value = (
        "host=evil.test"
        if header == "Forwarded"
        else "/app/admin"
        if "URL" in header
        else "evil.test"
    )
    me = by_cookie(rt, cookie) | {header: value}
    paths = [
        "/",
        "/app/links",
        f"/app/links/{link.id}",
        "/app/settings",
        "/road+",
        "/road.qr",
        "/hidden",
        "/nothing",
        "/opensearch.xml",
    ]
    paths += [
        "/api/v1/links",
        "/api/openapi.json",
        "/auth/sign-in",
        "/manifest.webmanifest",
        "/robots.txt",
        "/app/suggest?q=ro",
    ]
    paths += [
        f"{path}/"
        for path in (
            "/app/links",
            "/app/settings",
            "/api/v1/links",
            "/auth/sign-in",
            "/app",
            "/app/lists",
        )
    ]
    for path in paths:
        for accept in ({}, PAGE):
            answer = await client.get(path, headers=me | accept)
            assert answer.status_code < 500, path
            told = answer.text + str(answer.headers)
            assert "evil.test" not in told, (
                path,
                answer.status_code,
                answer.headers.get("location"),
            )
            assert "/app/admin" not in str(answer.headers), path


@on_sqlite
@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"])
async def test_a_get_stays_a_get(rt: Runtime, client: AsyncClient, header: str) -> None:
    _, cookie = await _ada(rt)
    answer = await client.get("/api/v1/me", headers=by_cookie(rt, cookie) | {header: "DELETE"})

    assert (answer.status_code, answer.json()["display_name"]) == (200, "Ada")
    assert (
        await client.get("/api/v1/me?_method=DELETE", headers=by_cookie(rt, cookie))
    ).status_code == 422
    assert (await client.get("/api/v1/me", headers=by_cookie(rt, cookie))).status_code == 200


@on_sqlite
@pytest.mark.parametrize(
    ("path", "onward"),
    [
        ("/app/links/", "/app/links"),
        ("/app/links/?q=a%20b", "/app/links?q=a%20b"),
        ("/app/links//", "/app/links"),
        ("/app/nothing/", None),
        ("//evil.test/", None),
        ("//evil.test/app/links/", None),
        ("/app//evil.test/", None),
    ],
)
async def test_a_slash_too_many_leads_to_the_same_host_and_nowhere_else(
    rt: Runtime, client: AsyncClient, path: str, onward: str | None
) -> None:
    _, cookie = await _ada(rt)
    answer = await client.get(f"http://go.test{path}", headers=by_cookie(rt, cookie))

    assert (answer.status_code, answer.headers.get("location")) == (
        (307, onward) if onward else (404, None)
    )


# -- what a key is good for


@on_sqlite
async def test_a_key_without_the_right_to_read_reads_nothing(rt: Runtime, app: WebNode) -> None:
    """Through no interface: API, pages, start page, suggestions, secure links."""
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        key = by_key(await make.key(session, rt, ada, Scope.WRITE))
        await make.link(
            session,
            rt,
            ada,
            "https://secret.example.com/",
            name="private-thing",
            title="Private thing",
        )
        await make.link(
            session, rt, ada, "https://secret.example.com/", name="hidden", visibility="secure"
        )
    async with client_of(app) as client:
        for route, row in ROWS.items():
            method, path = route.split(" ")
            asks_to_read = (
                row.profile.outcomes[Who.STRANGER] is SIGN_IN
                and row.profile.outcomes[Who.OWNER_READ_ONLY] is not FORBIDDEN
            )
            if method == "GET" and asks_to_read:
                answer = await client.get(absent_path(path), headers=key, params=row.query)
                assert answer.status_code == 403, (route, answer.status_code)
        for path in (
            "/",
            "/app/suggest?q=private",
            "/app/lists",
            "/api/v1/lists",
            "/hidden",
            "/hidden+",
            "/hidden.qr",
            "/private-thin",
        ):
            for accept in ({}, PAGE):
                answer = await client.get(path, headers=key | accept)
                assert "secret.example.com" not in answer.text + str(answer.headers), path
                assert "Private thing" not in answer.text, path


@on_sqlite
async def test_who_is_no_longer_an_administrator_has_a_key_like_any_other(
    rt: Runtime, client: AsyncClient
) -> None:
    """The scope on the key stays; the right behind it went with the role."""
    async with rt.db.write() as session:
        root, bob = await make.admin(session, rt), await make.person(session, rt, "bob")
        key, cookie = (
            by_key(await make.key(session, rt, root, *make.ALL)),
            by_cookie(rt, await make.cookie(session, rt, root)),
        )
        link = await make.link(session, rt, bob)
    assert (await client.get(f"/api/v1/links/{link.id}", headers=key)).status_code == 200
    async with rt.db.write() as session:
        (await session.get_one(User, root.id)).role = UserRole.USER

    for headers in (key, cookie):
        assert (await client.get(f"/api/v1/links/{link.id}", headers=headers)).status_code == 404
        assert (await client.get("/api/v1/admin/users", headers=headers)).status_code == 403
        made = await client.post(
            "/api/v1/keys", headers=headers, json={"name": "again", "scopes": ["admin"]}
        )
        assert made.status_code == 403


@on_sqlite
async def test_a_key_is_a_header_and_nothing_else(rt: Runtime, client: AsyncClient) -> None:
    async with rt.db.write() as session:
        key = await make.key(session, rt, await make.person(session, rt))
    for query in ({"api_key": key}, {"access_token": key}, {"key": key}, {"token": key}):
        assert (
            await client.get("/api/v1/me", params=query)
        ).status_code == 422  # no such parameter
    for headers in (
        {"Cookie": f"refract={key}"},
        {"Cookie": f"api_key={key}"},
        {"Authorization": f"Basic {key}"},
        {"Authorization": key},
    ):
        assert (await client.get("/api/v1/me", headers=headers)).status_code == 401


@on_sqlite
async def test_a_good_cookie_does_not_make_up_for_a_bad_key(
    rt: Runtime, client: AsyncClient
) -> None:
    _, cookie = await _ada(rt)
    for bad in (
        {"X-API-Key": "refract_x"},
        {"Authorization": "Bearer x"},
        {"Authorization": "Bearer a.b.c"},
    ):
        assert (
            await client.get("/api/v1/me", headers=by_cookie(rt, cookie) | bad)
        ).status_code == 401


# -- answers that are kept


@on_sqlite
async def test_an_answer_that_was_kept_is_given_only_to_whoever_may_ask(
    rt: Runtime, client: AsyncClient
) -> None:
    """A repeated Idempotency-Key with a weaker key, a revoked one, another user, no credential."""
    async with rt.db.write() as session:
        ada, bob = await make.person(session, rt, "ada"), await make.person(session, rt, "bob")
        strong, weak = (
            await make.key(session, rt, ada),
            await make.key(session, rt, ada, Scope.READ),
        )
        revoked, other = await make.revoked_key(session, rt, ada), await make.key(session, rt, bob)
        cookie = await make.cookie(session, rt, ada)

    async def post(headers: dict[str, str]) -> tuple[int, bool]:
        body = {"destination": "https://example.com/once", "names": [], "title": "Hers"}
        answer = await client.post(
            "/api/v1/links", headers=headers | {"Idempotency-Key": "one"}, json=body
        )
        return answer.status_code, "idempotency-replayed" in answer.headers

    assert await post(by_key(strong)) == (201, False)
    assert await post(by_key(strong)) == (201, True)
    callers: tuple[dict[str, str], ...] = (
        by_key(weak),
        by_key(revoked),
        {},
        by_cookie(rt, cookie, proven=False),
    )
    assert [await post(headers) for headers in callers] == [
        (403, False), (401, False), (401, False), (403, False),
    ]  # fmt: skip
    assert await post(by_key(other)) == (201, False)
    async with rt.db.write() as session:
        (await session.get_one(User, ada.id)).status = UserStatus.SUSPENDED
    assert await post(by_key(strong)) == (401, False)


@on_sqlite
async def test_a_cursor_is_good_for_whom_it_was_made(rt: Runtime, client: AsyncClient) -> None:
    async with rt.db.write() as session:
        people = [await make.person(session, rt, name) for name in ("ada", "bob")]
        ada, bob = [by_key(await make.key(session, rt, person)) for person in people]
        for person in people:
            for number in range(2):
                await make.link(session, rt, person, f"https://example.com/{number}")
    for headers in (ada, bob):
        for number in range(2):
            for path, body in (
                ("/api/v1/lists", {"title": f"List {number}"}),
                ("/api/v1/items", {"text": f"Thought {number}", "enrich": False}),
                ("/api/v1/tags", {"name": f"Tag {number}"}),
                ("/api/v1/items", {"text": f"https://example.com/{number}"}),
            ):
                assert (await client.post(path, headers=headers, json=body)).status_code == 201
            rows = [{"text": f"Row {number}"}]
            assert (
                await client.post("/api/v1/library/imports", headers=headers, json=rows)
            ).status_code == 202
    for path in ("links", "lists", "library", "tags", "items/pending", "library/imports"):
        first = (await client.get(f"/api/v1/{path}", headers=ada, params={"limit": "1"})).json()
        assert first["next_cursor"], path
        asked = {"limit": "1", "cursor": first["next_cursor"]}
        assert (
            await client.get(f"/api/v1/{path}", headers=ada, params=asked)
        ).status_code == 200, path
        taken = await client.get(f"/api/v1/{path}", headers=bob, params=asked)
        assert (taken.status_code, taken.json()["code"]) == (400, "INVALID_CURSOR"), path


# -- what one may say about oneself


@on_sqlite
@pytest.mark.parametrize(
    "wish",
    [
        {"role": "admin"}, {"plan": "pro"}, {"status": "active"}, {"email": "root@example.com"},
        {"email_verified": True}, {"id": "1"}, {"issuer": "x"}, {"subject": "root"},
        {"preferences": {"role": "admin"}}, {"display_name": "Root"},
    ],
    ids=str,
)  # fmt: skip
async def test_nobody_promotes_themselves(
    rt: Runtime, client: AsyncClient, wish: dict[str, Any]
) -> None:
    ada, cookie = await _ada(rt)
    browser = by_cookie(rt, cookie)

    assert (
        await client.patch("/api/v1/me", headers=browser, json={"bio": "x", **wish})
    ).status_code == 422
    await client.post(
        "/app/settings/profile",
        headers=browser | PAGE,
        data={"nickname": "x", **{key: str(value) for key, value in wish.items()}},
    )
    async with rt.db.read() as session:
        row = await session.get_one(User, ada.id)
    assert (row.role, row.plan, row.status, row.email, row.display_name) == (
        "user",
        "free",
        "active",
        "ada@example.com",
        "Ada",
    )


async def test_of_two_administrators_who_demote_each_other_one_stays(
    rt: Runtime, client: AsyncClient
) -> None:
    async with rt.db.write() as session:
        admins = [await make.admin(session, rt, name) for name in ("one", "two")]
        keys = [by_key(await make.key(session, rt, admin, *make.ALL)) for admin in admins]
    for wish in ({"role": "user"}, {"status": "suspended"}):
        answers = await asyncio.gather(
            *(
                client.patch(
                    f"/api/v1/admin/users/{admins[1 - mine].id}", headers=keys[mine], json=wish
                )
                for mine in (0, 1)
            )
        )
        assert min(answer.status_code for answer in answers) == 200, [
            answer.text for answer in answers
        ]
        async with rt.db.write() as session:
            rows = [await session.get_one(User, admin.id) for admin in admins]
            left = [
                row
                for row in rows
                if row.role == UserRole.ADMIN and row.status == UserStatus.ACTIVE
            ]
            assert len(left) == 1, wish
            for row in rows:
                row.role, row.status = UserRole.ADMIN, UserStatus.ACTIVE


@on_sqlite
async def test_whom_one_may_not_know_of_looks_like_nobody(rt: Runtime, client: AsyncClient) -> None:
    """Suspended, deleted and unverified accounts look the same as unknown email addresses."""
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        await make.suspended(session, rt, "sam")
        await make.person(session, rt, "dora", status=UserStatus.DELETED)
        await make.person(session, rt, "uma", email_verified=False)
        key, link = by_key(await make.key(session, rt, ada)), await make.link(session, rt, ada)

    async def told(name: str, door: str) -> tuple[int, str, str]:
        answer = await client.post(
            f"/api/v1/links/{link.id}/{door}", headers=key, json={"email": f"{name}@example.com"}
        )
        return answer.status_code, answer.json()["code"], answer.json()["detail"].replace(name, "…")

    for door in ("owners", "shares", "transfer"):
        assert len({await told(name, door) for name in ("sam", "dora", "uma", "nobody")}) == 1


# -- browsers that were led astray


@on_sqlite
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.test",
        "null",
        "http://go.test.evil.test",
        "http://go.test@evil.test",
        "https://go.test",
        "http://go.test:81",
        "go.test",
    ],
)
async def test_a_form_from_elsewhere_does_nothing(
    rt: Runtime, client: AsyncClient, origin: str
) -> None:
    _, cookie = await _ada(rt)
    astray = by_cookie(rt, cookie, proven=False) | {
        "Origin": origin,
        "Referer": "http://go.test/app/settings",
    }
    for kind in (
        "application/x-www-form-urlencoded",
        "text/plain",
        "application/json",
        "multipart/form-data; boundary=x",
    ):
        for method, path in (
            ("POST", "/api/v1/keys"),
            ("DELETE", "/api/v1/me"),
            ("POST", "/app/settings/delete"),
            ("POST", "/auth/sign-out"),
        ):
            answer = await client.request(
                method, path, headers=astray | {"Content-Type": kind}, content=b'{"name": "x"}'
            )
            assert answer.status_code in (400, 403, 415), (
                method,
                path,
                kind,
            )  # some bodies are refused before anybody is asked
    assert (await client.get("/api/v1/me", headers=by_cookie(rt, cookie))).status_code == 200
    assert (await client.get("/api/v1/keys", headers=by_cookie(rt, cookie))).json()["items"] == []


@on_sqlite
async def test_a_token_of_another_browser_or_in_the_address_proves_nothing(
    rt: Runtime, client: AsyncClient
) -> None:
    _, cookie = await _ada(rt)
    async with rt.db.write() as session:
        mallory = await make.cookie(session, rt, await make.person(session, rt, "mallory"))
    mine, theirs = csrf.make_token(rt, cookie), csrf.make_token(rt, mallory)
    bare = by_cookie(rt, cookie, proven=False)
    body = {"name": "x"}

    assert (
        await client.post("/api/v1/keys", headers=bare | {"X-CSRF-Token": theirs}, json=body)
    ).status_code == 403
    assert (
        await client.post("/api/v1/keys", headers=bare, json=body, params={"csrf": mine})
    ).status_code == 403
    assert (
        await client.post("/api/v1/keys", headers=bare, json=body | {"csrf": mine})
    ).status_code == 403
    assert (
        await client.post("/app/settings/keys", headers=bare, data=body | {"csrf": theirs})
    ).status_code == 403
    assert (
        await client.post("/api/v1/keys", headers=bare | {"X-CSRF-Token": mine}, json=body)
    ).status_code == 201


@on_sqlite
@pytest.mark.parametrize("origin", [None, "null", "https://evil.test"])
async def test_nobody_is_signed_in_as_somebody_else_by_a_form_from_elsewhere(
    rt: Runtime, client: AsyncClient, origin: str | None
) -> None:
    """Login CSRF: an attacker's own sign-in link must not be usable in a victim's browser."""
    async with rt.db.write() as session:
        link = await make.signin_link(session, rt, await make.person(session, rt, "mallory"))
    headers = {} if origin is None else {"Origin": origin}

    refused = await client.post(link, headers=headers)
    assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
    assert (await client.get(link)).status_code == 200, "it was not used up"


@on_sqlite
async def test_over_https_only_the_guarded_cookie_counts(rt: Runtime) -> None:
    """A sibling subdomain or a network attacker can set a cookie, but none named `__Host-…`."""
    _, cookie = await _ada(rt)
    rt.settings = rt.settings.model_copy(update={"base_url": "https://go.test"})
    rt.settings.__dict__.pop("public_url", None)
    async with client_of(WebNode(rt)) as client:
        for name, status in (
            ("refract", 401),
            ("__host-refract", 401),
            ("__Secure-refract", 401),
            ("__Host-refract", 200),
        ):
            assert (
                await client.get("/api/v1/me", headers={"Cookie": f"{name}={cookie}"})
            ).status_code == status, name
        planted = {"Cookie": f"refract=planted; __Host-refract={cookie}"}
        assert (await client.get("/api/v1/me", headers=planted)).status_code == 200


@on_sqlite
async def test_a_cookie_is_worth_nothing_after_the_sign_out(
    rt: Runtime, client: AsyncClient
) -> None:
    _, cookie = await _ada(rt)
    assert (await client.post("/auth/sign-out", headers=by_cookie(rt, cookie))).status_code == 303

    assert (await client.get("/api/v1/me", headers=by_cookie(rt, cookie))).status_code == 401
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(BrowserSession)) == 0


@on_sqlite
@pytest.mark.parametrize(
    "value",
    [b"\xff\xfe", b"a" * 5000, b'"quoted"', b"%00", b"=;=", b"\xe2\x80\xae", b"' OR 1=1 --"],
)
async def test_odd_credentials_are_just_wrong(
    rt: Runtime, client: AsyncClient, value: bytes
) -> None:
    for name, status in ((b"cookie", 401), (b"x-api-key", 401), (b"authorization", 401)):
        given = {b"cookie": b"refract=" + value, b"authorization": b"Bearer " + value}.get(
            name, value
        )
        assert (await client.get("/api/v1/me", headers=[(name, given)])).status_code == status


# -- at the same moment


async def test_what_is_made_while_the_account_goes_goes_along(
    rt: Runtime, client: AsyncClient, clock: ManualClock
) -> None:
    """Whoever wins each single race, in the end nothing of theirs leads anywhere."""
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        key = by_key(await make.key(session, rt, ada, *make.OWN))

    async def make_link(number: int) -> int:
        body = {"destination": f"https://example.com/{number}", "names": [f"race-{number}"]}
        return (await client.post("/api/v1/links", headers=key, json=body)).status_code

    async def make_item(number: int) -> int:
        return (
            await client.post("/api/v1/items", headers=key, json={"text": f"Thought {number}"})
        ).status_code

    async def leave() -> int:
        return (await client.delete("/api/v1/me", headers=key)).status_code

    answers = await asyncio.gather(
        *(make_link(number) for number in range(4)),
        make_item(0),
        leave(),
        make_item(1),
        *map(make_link, range(4, 8)),
    )
    assert set(answers) <= {201, 204, 401}, answers
    for _ in range(
        3
    ):  # jobs that meet at the same rows make way for each other, and are tried again
        clock.advance(180)
        await build_worker(rt).run_due_jobs()

    async with rt.db.read() as reading:
        theirs = (
            select(Link.status)
            .join(LinkOwner, LinkOwner.link_id == Link.id)
            .where(LinkOwner.user_id == ada.id)
        )
        assert set(await reading.scalars(theirs)) <= {"deleted"}
    for number in range(8):
        assert (await client.get(f"/race-{number}")).status_code in (404, 410)
