"""The slow path of the real application, on each database."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, update

from refract.app import PathDispatcher, build_api
from refract.core.clock import ManualClock
from refract.core.db.raw import open_raw_reader
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.identity import sessions
from refract.identity.keys import create_key
from refract.identity.models import Scope, User, UserRole
from refract.links import service
from refract.links.models import Link
from refract.links.safety.blocked_domains import block_domain, unblock_domain
from refract.names import similarity
from refract.names.enums import NameTarget
from refract.names.models import Name
from refract.redirect import api as redirect_api
from refract.redirect.asgi import RedirectApp
from refract.redirect.frontend import WebFrontend
from refract.redirect.lookup import DatabaseLookup
from refract.redirect.resolver import RedirectTarget
from refract.redirect.responses import build_redirect_headers as lane_headers
from refract.web.middleware import RequestMiddleware
from tests import make
from tests.redirect.nodes import Counting

HTML = {"accept": "text/html"}


@pytest.fixture
def reader(rt: Runtime) -> Counting:
    return Counting(open_raw_reader(rt.db))


@pytest.fixture
async def client(rt: Runtime, reader: Counting) -> AsyncIterator[httpx.AsyncClient]:
    """The application without our protocol."""
    api = build_api(rt)
    api.include_router(redirect_api.router)
    lookup = DatabaseLookup(rt, reader)
    lookup.has_kept_codes = False
    follow = RedirectApp(rt, lookup, WebFrontend(rt, api))
    api.state.redirects = follow
    app = RequestMiddleware(PathDispatcher(api, follow), rt)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://go.test"
    ) as browser:
        yield browser


@pytest.fixture
async def ada(rt: Runtime) -> User:
    async with rt.db.write() as session:
        return await make.person(session, rt, "ada")


@pytest.fixture
async def bob(rt: Runtime) -> User:
    async with rt.db.write() as session:
        return await make.person(session, rt, "bob")


async def link(rt: Runtime, owner: User, destination: str, **given: Any) -> Link:
    async with rt.db.write() as session:
        return await make.link(session, rt, owner, destination, **given)


async def cookie(rt: Runtime, user: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return {"cookie": f"refract={await sessions.create_session(session, rt, user, 'test')}"}


async def key(rt: Runtime, user: User) -> dict[str, str]:
    async with rt.db.write() as session:
        _, clear = await create_key(session, rt, user, "test", [Scope.READ])
    return {"x-api-key": clear}


async def test_a_name_and_a_code_lead_to_the_same_place_by_one_statement_each(
    rt: Runtime, client: httpx.AsyncClient, reader: Counting, ada: User
) -> None:
    made = await link(rt, ada, "https://Example.com/ä?q=1", name="Road-Map", redirect_status=308)

    answers = [
        await client.get(path) for path in ("/road_map", f"/{encode_base62(made.id)}", "/ROAD-map)")
    ]

    assert [answer.status_code for answer in answers] == [308] * 3
    assert {answer.headers["location"] for answer in answers} == {"https://example.com/%C3%A4?q=1"}
    assert len(reader.asked) == 3


async def test_redirect_has_the_headers_of_the_lane_and_no_other(
    rt: Runtime, client: httpx.AsyncClient, ada: User
) -> None:
    await link(rt, ada, "https://example.com/", name="manual")

    answer = await client.get("/manual", headers=HTML)

    assert answer.headers.raw == lane_headers(302, b"https://example.com/")


async def test_a_name_comes_before_a_code(rt: Runtime, ada: User) -> None:
    """As after a restore from another installation: the naming rules prevent it otherwise."""
    coded, named = (
        await link(rt, ada, "https://example.com/code"),
        await link(rt, ada, "https://example.com/name", name="other"),
    )
    text = encode_base62(coded.id)
    async with rt.db.write() as session:
        await session.execute(insert(Name).values(_name(text, NameTarget.LINK, named.id, rt)))

    found = await DatabaseLookup(rt).find(text)

    assert found is not None
    assert found.id == named.id
    assert not found.by_code


async def test_a_list_is_found_by_its_name(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await session.execute(insert(Name).values(_name("books", NameTarget.LIST, 77, rt)))

    assert await DatabaseLookup(rt).find("BOOKS") == RedirectTarget(
        kind="list", id=77, name="books"
    )


def _name(name: str, kind: NameTarget, target: int, rt: Runtime) -> dict[str, Any]:
    head, middle, tail = similarity.split_key(name.lower())
    return {
        "key": name.lower(),
        "name": name,
        "kind": kind.value,
        "target_id": target,
        "head": head,
        "middle": middle,
        "tail": tail,
        "created_at": rt.clock.now(),
    }


async def test_life_cycle_reaches_the_visitor(
    rt: Runtime, client: httpx.AsyncClient, ada: User, clock: ManualClock
) -> None:
    made = await link(
        rt, ada, "https://example.com/", name="offer", expires_at=clock.now() + timedelta(seconds=5)
    )
    who = make.who(ada)

    clock.advance(4.999999)
    assert (await client.get("/offer")).status_code == 302
    clock.advance(0.000001)
    expired = await client.get("/offer")
    assert (expired.status_code, expired.json()["code"]) == (410, "LINK_EXPIRED")
    async with rt.db.write() as session:
        await service.renew_link(session, who, made.id, clock.now())
    assert (await client.get("/offer")).status_code == 302
    async with rt.db.write() as session:
        await service.disable_link(session, who, made.id, clock.now())
    assert (await client.get("/offer")).json()["code"] == "LINK_DISABLED"
    async with rt.db.write() as session:
        await service.delete_link(session, who, made.id, clock.now())
    gone = await client.get("/offer", headers=HTML)
    assert gone.status_code == 410
    assert "This link was deleted." in gone.text


async def test_blocking_a_domain_stops_its_links_at_once(
    rt: Runtime, client: httpx.AsyncClient, ada: User
) -> None:
    await link(rt, ada, "https://www.evil.example/x", name="prize")
    await link(rt, ada, "https://evil.example.org/", name="other")
    assert (await client.get("/prize")).status_code == 302

    async with rt.db.write() as session:
        await block_domain(session, "evil.example", reason="phishing", by=None, at=rt.clock.now())
    blocked, page = await client.get("/prize"), await client.get("/prize", headers=HTML)
    assert (blocked.status_code, blocked.json()["code"]) == (410, "LINK_BLOCKED")
    assert "Blocked" in page.text
    assert "evil.example" not in page.text
    assert (await client.get("/other")).status_code == 302

    async with rt.db.write() as session:
        await unblock_domain(session, "evil.example", by=None, at=rt.clock.now())
    assert (await client.get("/prize")).status_code == 302


async def test_destination_that_no_longer_reads_is_not_led_to(
    rt: Runtime, client: httpx.AsyncClient, ada: User
) -> None:
    made = await link(rt, ada, "https://example.com/", name="manual")
    async with rt.db.write() as session:
        await session.execute(
            update(Link).where(Link.id == made.id).values(destination="javascript:alert(1)")
        )

    assert (await client.get("/manual")).status_code == 410


async def test_secure_link(rt: Runtime, client: httpx.AsyncClient, ada: User, bob: User) -> None:
    made = await link(rt, ada, "https://example.com/plan", name="plan", visibility="secure")
    async with rt.db.write() as session:
        root = await make.person(session, rt, "root", role=UserRole.ADMIN)

    stranger = await client.get("/plan", headers=HTML)
    assert (stranger.status_code, stranger.headers["location"]) == (302, "/auth/sign-in")
    assert "x-request-id" in stranger.headers
    assert (await client.get("/plan")).status_code == 401
    assert (await client.get("/plan", headers=await cookie(rt, ada))).headers[
        "location"
    ] == "https://example.com/plan"
    assert (await client.get("/plan", headers=await key(rt, ada))).status_code == 302
    assert (await client.get("/plan", headers=await cookie(rt, root))).status_code == 302
    foreign = await client.get("/plan", headers=await cookie(rt, bob))
    assert (foreign.status_code, foreign.json()["code"]) == (404, "SHORT_LINK_NOT_FOUND")
    async with rt.db.write() as session:
        await service.share_link(session, make.who(ada), made.id, bob.email, rt.clock.now())
    assert (await client.get("/plan", headers=await cookie(rt, bob))).status_code == 302


async def test_sign_in_leads_back_to_the_secure_link(
    rt: Runtime, client: httpx.AsyncClient, ada: User
) -> None:
    await link(rt, ada, "https://example.com/plan", name="plan", visibility="secure")
    async with rt.db.write() as session:
        address = await sessions.create_signin_link(session, rt, ada)

    await client.get("/plan/a%20b?x=1", headers=HTML)
    signed_in = await client.post(address, headers={"origin": "http://go.test"})

    # A redirect out of a form would be blocked by `form-action 'self'`.
    assert signed_in.status_code == 200
    assert 'href="/plan/a%20b?x=1"' in signed_in.text
    arrived = await client.get("/plan/a%20b?x=1", headers=HTML)
    assert arrived.headers["location"] == "https://example.com/plan/a%20b"
    assert "refract_return" not in client.cookies


async def test_page_for_an_unknown_name(rt: Runtime, client: httpx.AsyncClient, ada: User) -> None:
    await link(rt, ada, "https://example.com/1", name="roadmap", visibility="public")
    await link(rt, ada, "https://example.com/2", name="roadmop")
    await link(rt, ada, "https://example.com/3", name="raodmap2", visibility="secure")

    stranger = await client.get("/raodmap", headers=HTML)
    owner = await client.get("/raodmap", headers=HTML | await cookie(rt, ada))
    hostile = await client.get("/%3Cscript%3Ealert(1)%3C%2Fscript%3E", headers=HTML)

    assert stranger.status_code == owner.status_code == hostile.status_code == 404
    assert 'href="/roadmap"' not in stranger.text
    assert 'href="/roadmap"' in owner.text
    assert "roadmop" not in stranger.text
    assert "raodmap2" not in stranger.text
    assert "Create /raodmap" not in stranger.text
    assert 'href="/raodmap2"' in owner.text
    assert "Create /raodmap" in owner.text
    assert "<script>alert" not in hostile.text
    assert "script-src 'self'" in stranger.headers["content-security-policy"]
    assert stranger.headers["cache-control"] == "no-store"
    assert "x-request-id" in stranger.headers


async def test_preview_page(rt: Runtime, client: httpx.AsyncClient, ada: User) -> None:
    await link(rt, ada, "https://bücher.example/?x=<y>", name="books", title="<b>Books</b>")

    page = await client.get("/books+", headers=HTML)

    assert page.status_code == 200
    assert "xn--bcher-kva.example" in page.text
    assert "&lt;b&gt;Books&lt;/b&gt;" in page.text
    assert "<b>Books" not in page.text
    assert 'src="/books.qr"' in page.text
    assert (await client.get("/books.qr")).headers["content-type"] == "image/svg+xml"


async def test_error_pages_for_people(rt: Runtime, client: httpx.AsyncClient, ada: User) -> None:
    await link(rt, ada, "https://example.com/{1}", name="jira")

    unfit, method = (
        await client.get("/jira", headers=HTML),
        await client.post("/jira", headers=HTML),
    )

    assert unfit.status_code == 404
    assert "This link needs a value for {1}. Write it like /jira/{1}." in unfit.text
    assert (method.status_code, method.headers["allow"]) == (405, "GET, HEAD")
    assert (
        await client.get("/jira+", headers=HTML | {"x-api-key": "refract_wrong"})
    ).status_code == 401


# -- POST /resolve


@pytest.mark.parametrize(
    "spelling",
    [
        "/jira/PROJ-1",
        "jira/PROJ-1",
        "http://go.test/jira/PROJ-1",
        "//go.test/jira/PROJ-1",
        "GO.test/jira/PROJ-1#x",
    ],
)
async def test_resolve_says_where_and_why(
    rt: Runtime, client: httpx.AsyncClient, ada: User, spelling: str
) -> None:
    made = await link(rt, ada, "https://jira.example/browse/{1}", name="Jira")

    answer = await client.post(
        "/api/v1/resolve", json={"path": spelling}, headers=await key(rt, ada)
    )

    assert answer.json() == {
        "path": "/jira/PROJ-1",
        "outcome": "redirect",
        "status": 302,
        "location": "https://jira.example/browse/PROJ-1",
        "why": (
            "The name /Jira goes to https://jira.example/browse/{1}; the path fills its"
            " placeholders."
        ),
        "name": "Jira",
        "link_id": str(made.id),
        "rule": None,
        "rules": None,
        "headers": {
            "location": "https://jira.example/browse/PROJ-1",
            "cache-control": "private, no-store",
            "content-length": "0",
            "x-content-type-options": "nosniff",
            "referrer-policy": "strict-origin-when-cross-origin",
            "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        },
        "suggestions": [],
    }


async def test_resolve_tells_every_outcome(
    rt: Runtime, client: httpx.AsyncClient, ada: User, bob: User, clock: ManualClock
) -> None:
    await link(rt, ada, "https://example.com/d?v=1", name="manual", forward_query=True)
    await link(
        rt, ada, "https://example.com/", name="old", expires_at=clock.now() + timedelta(seconds=1)
    )
    await link(rt, ada, "https://example.com/plan", name="plan", visibility="secure")
    plain = await link(rt, ada, "https://example.com/plain")
    async with rt.db.write() as session:
        await session.execute(insert(Name).values(_name("books", NameTarget.LIST, 77, rt)))
    clock.advance(1)
    mine, theirs = await key(rt, ada), await key(rt, bob)

    async def ask(path: str, headers: dict[str, str] = mine) -> tuple[str, int, str | None]:
        answer = (await client.post("/api/v1/resolve", json={"path": path}, headers=headers)).json()
        assert answer["why"].endswith(".")
        return answer["outcome"], answer["status"], answer["location"]

    assert await ask("manual/ü?v=2") == ("redirect", 302, "https://example.com/d/%C3%BC?v=2")
    assert await ask(f"/{encode_base62(plain.id)}") == (
        "redirect",
        302,
        "https://example.com/plain",
    )
    assert await ask("manual).") == ("redirect", 302, "https://example.com/d?v=1")
    assert await ask("manual/../x") == ("does_not_fit", 404, None)
    assert await ask("manual+") == ("preview", 200, "https://example.com/d?v=1")
    assert await ask("manual.qr") == ("qr", 200, "https://example.com/d?v=1")
    assert await ask("old") == ("expired", 410, None)
    assert await ask("books") == ("list", 200, None)
    assert await ask("plan") == ("redirect", 302, "https://example.com/plan")
    assert await ask("plan", theirs) == ("not_found", 404, None)
    assert await ask("nothing") == ("not_found", 404, None)
    assert await ask("/") == ("own_page", 200, None)
    assert await ask("API/v1") == ("own_page", 200, None)
    assert (await client.post("/api/v1/resolve", json={"path": "manual"})).status_code == 401
    assert (
        await client.post("/api/v1/resolve", json={"path": ""}, headers=mine)
    ).status_code == 422
    assert (
        await client.post("/api/v1/resolve", json={"path": "x", "more": 1}, headers=mine)
    ).status_code == 422


async def test_resolve_keeps_the_id_of_a_deleted_link_from_those_who_may_not_see_it(
    rt: Runtime, client: httpx.AsyncClient, ada: User, bob: User, clock: ManualClock
) -> None:
    made = await link(rt, ada, "https://example.com/", name="offer")
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        await service.share_link(session, make.who(ada), made.id, bob.email, clock.now())
        await service.delete_link(session, make.who(ada), made.id, clock.now())
        strong = {"x-api-key": await make.key(session, rt, root, *make.ALL)}

    async def ask(headers: dict[str, str]) -> tuple[str, str | None]:
        answer = (
            await client.post("/api/v1/resolve", json={"path": "offer"}, headers=headers)
        ).json()
        return answer["outcome"], answer["link_id"]

    assert await ask(await key(rt, bob)) == ("deleted", None)
    assert await ask(await key(rt, ada)) == ("deleted", str(made.id))
    assert await ask(strong) == ("deleted", str(made.id))
