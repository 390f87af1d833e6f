"""Links that start later, and URLs that visitors get before the start and after the expiry."""

from datetime import timedelta

import pytest
from httpx import AsyncClient

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import Scope, User
from tests import make
from tests.client import by_cookie, by_key, on_sqlite

PAGE = {"Accept": "text/html"}
SALE = "https://shop.example/sale"
SOON = "https://shop.example/soon"
OVER = "https://shop.example/over"
DAY = timedelta(days=1)


async def _make_sale(rt: Runtime, owner: User, **fields: object) -> None:
    now = rt.clock.now()
    given = {"starts_at": now + DAY, "expires_at": now + 2 * DAY, **fields}
    async with rt.db.write() as session:
        await make.link(session, rt, owner, SALE, name="sale", **given)


async def test_it_leads_elsewhere_before_it_starts_and_after_it_expired(
    rt: Runtime, client: AsyncClient, app: WebNode, clock: ManualClock, ada: User
) -> None:
    await _make_sale(rt, ada, before_destination=SOON, expired_destination=OVER)

    async def follow() -> tuple[int, str, str]:
        answer = await client.get("/sale")
        return answer.status_code, answer.headers["location"], answer.headers["cache-control"]

    assert await follow() == (302, SOON, "private, no-store")
    assert app.engine is not None
    assert app.engine.cache.paths == {}
    clock.advance(DAY.total_seconds())
    assert (await follow())[:2] == (302, SALE)
    clock.advance(DAY.total_seconds())
    assert await follow() == (302, OVER, "private, no-store")


async def test_without_them_pages_say_so(
    rt: Runtime, client: AsyncClient, clock: ManualClock, ada: User
) -> None:
    await _make_sale(rt, ada)
    early = await client.get("/sale", headers=PAGE)
    assert early.status_code == 404  # not 410: search engines would forget it
    assert "isn’t active yet" in early.text
    assert (await client.get("/sale")).json()["code"] == "LINK_NOT_STARTED"
    assert "shop.example" not in (await client.get("/sale+", headers=PAGE)).text
    clock.advance(2 * DAY.total_seconds())
    late = await client.get("/sale", headers=PAGE)
    assert (late.status_code, "has expired" in late.text) == (410, True)


@on_sqlite
async def test_other_views_are_no_redirects(rt: Runtime, client: AsyncClient, ada: User) -> None:
    await _make_sale(rt, ada, before_destination=SOON)
    assert (await client.get("/sale+", headers=PAGE)).status_code == 404
    assert (await client.get("/sale.qr", headers=PAGE)).status_code == 404


@on_sqlite
async def test_a_domain_that_was_blocked_later_is_not_led_to(
    rt: Runtime, client: AsyncClient, ada: User, root: User
) -> None:
    await _make_sale(rt, ada, before_destination="https://evil.example/")
    assert (await client.get("/sale")).headers["location"] == "https://evil.example/"
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, root, Scope.WRITE, Scope.ADMIN))
    added = await client.post(
        "/api/v1/admin/blocked-domains", headers=key, json={"domain": "evil.example"}
    )
    assert added.status_code == 201, added.text
    assert (await client.get("/sale")).status_code == 404


@on_sqlite
async def test_resolve_explains_it(rt: Runtime, client: AsyncClient, ada: User) -> None:
    await _make_sale(rt, ada, before_destination=SOON)
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))
        await make.link(
            session, rt, ada, SALE, name="later", starts_at=rt.clock.now() + timedelta(hours=1)
        )
    told = (await client.post("/api/v1/resolve", headers=key, json={"path": "sale"})).json()
    assert (told["outcome"], told["location"]) == ("redirect", SOON)
    assert "before it starts" in told["why"]
    told = (await client.post("/api/v1/resolve", headers=key, json={"path": "later"})).json()
    assert (told["outcome"], told["status"], told["location"]) == ("scheduled", 404, None)


@on_sqlite
async def test_only_who_manages_a_link_looks_into_its_future(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        keys = [by_key(await make.key(session, rt, user)) for user in (ada, bob)]
        now = rt.clock.now()
        await make.link(session, rt, ada, SALE, name="later", starts_at=now + timedelta(hours=1))
    asked = {"path": "later", "visitor": {"at": (now + timedelta(hours=2)).isoformat()}}

    mine, theirs = [
        (await client.post("/api/v1/resolve", headers=key, json=asked)).json() for key in keys
    ]

    assert (mine["outcome"], mine["location"]) == ("redirect", SALE)
    assert (theirs["outcome"], theirs["location"]) == ("scheduled", None)
    assert SALE not in str(theirs)


@pytest.mark.parametrize("field", ["before_destination", "expired_destination"])
@on_sqlite
async def test_they_pass_the_checks_of_destinations(
    rt: Runtime, client: AsyncClient, ada: User, field: str
) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))
    for url in ("javascript:alert(1)", "http://go.test/sale", "https://x.example/{1}"):
        new = {"destination": SALE, field: url}
        refused = await client.post("/api/v1/links", headers=key, json=new)
        assert refused.status_code == 422, url
        assert refused.json()["errors"][0]["field"] == field


async def test_the_form_keeps_what_was_typed_and_the_page_shows_it(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Origin": "http://go.test"}
    fields = {
        "then": "link",
        "destination": SALE,
        "name": "sale",
        "starts": "2030-05-01T10:00",
        "starts_zone": "-120",
        "before_destination": "shop.example/soon",
        "expires": "2030-04-01T10:00",
        "expires_zone": "-120",
        "expired_destination": OVER,
    }
    wrong = await client.post("/app/links", headers=cookie, data=fields)
    assert wrong.status_code == 422
    assert "must start before it expires" in wrong.text
    assert 'value="2030-05-01T10:00"' in wrong.text
    made = await client.post(
        "/app/links", headers=cookie, data=fields | {"expires": "2030-06-01T10:00"}
    )
    assert made.status_code == 303, made.text
    page = (await client.get(made.headers["location"] + "?tab=settings", headers=cookie)).text
    assert "Before it starts, redirect to" in page
    assert "shop.example/soon" in page
    assert "state-scheduled" in page
    assert "state-scheduled" in (await client.get("/app/links", headers=cookie)).text
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))
    (item,) = (await client.get("/api/v1/links", headers=key)).json()["items"]
    assert item["starts_at"].startswith("2030-05-01T08:00")
    assert item["before_destination"] == SOON
