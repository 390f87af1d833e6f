"""Every response of the slow path, read from the socket."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Scope

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.links.golinks.expansion import ExpansionFailure, expand_template
from refract.redirect.asgi import RedirectApp
from refract.redirect.hooks import RedirectHooks
from refract.redirect.resolver import (
    DeadOutcome,
    MissingOutcome,
    RedirectOutcome,
    RedirectTarget,
    ShortLinkRequest,
)
from refract.web import return_path
from tests.conftest import START, make_settings
from tests.corpus.urls import ACCEPTED
from tests.redirect.parts import MemoryLookup, PlainSurface, Wire, link, served

HTML = "text/html,application/xhtml+xml"
NOTHING: Any = SimpleNamespace()


@dataclass
class World:
    """A server, its names, and the calls of its hooks."""

    clock: ManualClock
    lookup: MemoryLookup = field(default_factory=MemoryLookup)
    clicks: list[int] = field(default_factory=list)
    kept: dict[bytes, str] = field(default_factory=dict)
    states: list[Any] = field(default_factory=list)
    rt: Runtime | None = None

    async def record(self, scope: Scope, found: RedirectTarget) -> None:
        assert scope["method"] != "HEAD"
        self.clicks.append(found.id)

    def fill(self, path: bytes, found: RedirectTarget, href: str) -> None:
        assert not found.restricted
        self.kept[path] = href

    def app(self, data: Path, **settings: Any) -> ASGIApp:
        rt = Runtime(
            settings=make_settings(data, **settings),
            db=NOTHING,
            clock=self.clock,
            ids=NOTHING,
            secret=Secret(b"s" * 40),
        )
        self.rt = rt
        follow = RedirectApp(
            rt, self.lookup, PlainSurface(), RedirectHooks(self.record, self.fill, _list_page)
        )

        async def noting(scope: Scope, receive: Any, send: Any) -> None:
            await follow(scope, receive, send)
            self.states.append(scope.get("state", {}).get("redirect", False))

        return noting

    @asynccontextmanager
    async def serving(self, data: Path, **settings: Any) -> AsyncIterator[Callable[[], Any]]:
        """Serve the application with uvicorn, and close all it has started."""
        async with served(self.app(data, **settings)) as connect:
            yield connect
        if self.rt is not None:
            await self.rt.close()


async def _list_page(
    scope: Scope, found: RedirectTarget, wish: ShortLinkRequest
) -> ASGIApp | RedirectOutcome | DeadOutcome | MissingOutcome:
    match wish.extra:
        case "1":
            return RedirectOutcome(
                RedirectTarget(kind="entry", id=51, name="books/1"), "https://example.com/book"
            )
        case "2":
            return DeadOutcome(RedirectTarget(kind="entry", id=52, name="books/2"), "blocked")
        case "9":
            return MissingOutcome()
    return PlainTextResponse(f"list {found.id} {wish.view} {wish.feed} {wish.extra} {wish.query}")


@pytest.fixture
def world() -> World:
    return World(ManualClock(START))


@pytest.fixture
async def wire(world: World, tmp_path: Path) -> AsyncIterator[Wire]:
    async with world.serving(tmp_path) as connect:
        yield await connect()


# -- redirects


@pytest.mark.parametrize(
    ("status", "cache"),
    [
        (301, "private, max-age=30"),
        (302, "private, no-store"),
        (307, "private, no-store"),
        (308, "private, max-age=30"),
    ],
)
async def test_four_redirects_and_head_answers_alike(
    world: World, wire: Wire, status: int, cache: str
) -> None:
    world.lookup.add(link("docs", "https://Example.com/ä", redirect_status=status, id=7))

    got = await wire.ask("/docs")
    head = await wire.ask("/docs", "HEAD")

    assert got.status == status
    assert got.header("location") == "https://example.com/%C3%A4"
    assert got.header("cache-control") == cache
    assert got.header("x-request-id") is None
    assert got.header("date")
    assert got.body == b""
    assert [line for line in head.lines if not line.startswith(b"date")] == [
        line for line in got.lines if not line.startswith(b"date")
    ]
    assert head.status == status
    assert world.clicks == [7]
    assert world.states == [True, True]
    assert world.kept == {b"/docs": "https://example.com/%C3%A4"}


async def test_names_are_forgiving(world: World, wire: Wire) -> None:
    world.lookup.add(link("Road-Map", "https://example.com/"))

    for path in (
        "/Road-Map",
        "/road_map",
        "/ROAD-MAP",
        "/%72oad-map",
        "/road-map.",
        "/road-map),",
        "/road-map!?",
        "/road-map/",
    ):
        assert (await wire.ask(path)).header("location") == "https://example.com/"


async def test_what_can_be_no_name_is_not_looked_up(world: World, wire: Wire) -> None:
    for path in (
        "/a%20b",
        "/%FF",
        "/%C3%A9",
        "/a%2Fb",
        "/-x",
        "/" + "x" * 51,
        "/.env",
        "/wp-login.php",
        "/x@y",
        "/%2e%2e",
        "/a:b",
        "/%EF%BD%81pi",
    ):
        assert (await wire.ask(path)).status == 404
    assert world.lookup.asked == []


async def test_extra_path_and_query(world: World, wire: Wire) -> None:
    world.lookup.add(
        link("docs", "https://example.com/d?v=1"), link("jira", "https://jira.example/browse/{1}")
    )
    world.lookup.add(link("search", "https://s.example/?q=1&lang=en", forward_query=True))

    assert (await wire.ask("/docs/a%2Fb/c%20d?utm_source=x")).header(
        "location"
    ) == "https://example.com/d/a%2Fb/c%20d?v=1"
    assert (await wire.ask("/jira/PROJ-1?x=1")).header(
        "location"
    ) == "https://jira.example/browse/PROJ-1"
    assert (await wire.ask("/search?q=2&n=%C3%A4")).header(
        "location"
    ) == "https://s.example/?q=2&lang=en&n=%C3%A4"
    assert (await wire.ask("/search")).header("location") == "https://s.example/?q=1&lang=en"
    assert set(world.kept) == {b"/docs/a%2Fb/c%20d", b"/jira/PROJ-1", b"/search"}
    assert world.kept[b"/search"] == "https://s.example/?q=1&lang=en"


async def test_path_that_does_not_fit_is_explained_and_not_counted(
    world: World, wire: Wire
) -> None:
    world.lookup.add(link("jira", "https://jira.example/browse/{1}"))

    reply = await wire.ask("/jira")
    page = await wire.ask("/jira/a/b", accept=HTML)

    assert reply.status == page.status == 404
    assert reply.json["code"] == "PATH_MISMATCH"
    assert reply.json["detail"] == "This link needs a value for {1}. Write it like /jira/{1}."
    assert page.json["template"] == "error.html"
    assert "but this link takes 1" in page.json["detail"]
    assert world.clicks == []
    assert world.kept == {}


async def test_other_methods_are_refused(world: World, wire: Wire) -> None:
    world.lookup.add(link("docs", "https://example.com/"))

    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"):
        reply = await wire.ask("/docs", method, content_length="0")
        assert reply.status == 405
        assert reply.header("allow") == "GET, HEAD"
        assert reply.json["code"] == "METHOD_NOT_ALLOWED"
    assert world.clicks == []


@pytest.mark.parametrize("status", [307, 308])
async def test_every_method_follows_a_redirect_that_keeps_it(
    world: World, wire: Wire, status: int
) -> None:
    """SPEC 20: 307 and 308 links returned 405. The body is not read, and it counts as a click."""
    world.lookup.add(link("hook", "https://example.com/hook", redirect_status=status))

    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"):
        reply = await wire.ask("/hook", method, content_length="0")
        assert (reply.status, reply.header("location")) == (status, "https://example.com/hook")
    assert len(world.clicks) == 6


async def test_an_unknown_name_is_missed_by_every_method(world: World, wire: Wire) -> None:
    """Otherwise codes of 307 links could be enumerated by POST without a limit."""
    allowed = 120
    answers = [await wire.ask("/nothing", "POST", content_length="0") for _ in range(allowed + 1)]

    assert {reply.status for reply in answers[:-1]} == {404}
    assert answers[-1].status == 429


# -- life cycle


async def test_expiry_holds_to_the_instant(world: World, wire: Wire) -> None:
    world.lookup.add(
        link("offer", "https://example.com/", expires_at=START + timedelta(seconds=10))
    )

    world.clock.advance(9.999999)
    assert (await wire.ask("/offer")).status == 302
    world.clock.advance(0.000001)
    gone = await wire.ask("/offer")

    assert gone.status == 410
    assert gone.json["code"] == "LINK_EXPIRED"
    assert world.clicks == [1]
    world.clock.advance(-0.000001)
    assert (await wire.ask("/offer")).status == 302


@pytest.mark.parametrize(
    ("facts", "code", "state"),
    [
        ({"status": "disabled"}, "LINK_DISABLED", "disabled"),
        ({"status": "deleted"}, "LINK_DELETED", "deleted"),
        ({"status": "active", "blocked": True}, "LINK_BLOCKED", "blocked"),
        ({"status": "disabled", "expires_at": START}, "LINK_DISABLED", "disabled"),
        ({"status": "expired", "expires_at": START}, "LINK_EXPIRED", "expired"),
        ({"status": "deleted", "blocked": True}, "LINK_DELETED", "deleted"),
    ],
)
async def test_dead_links_say_so(
    world: World, wire: Wire, facts: dict[str, Any], code: str, state: str
) -> None:
    world.lookup.add(link("old", "https://example.com/secret-place", **facts))

    for path in ("/old", "/old+", "/old.qr", "/old/x"):
        problem = await wire.ask(path)
        page = await wire.ask(path, accept=HTML)
        assert problem.status == page.status == 410
        assert problem.header("content-type") == "application/problem+json"
        assert problem.json["code"] == code
        assert page.json["template"] == "redirect/gone.html"
        assert page.json["state"] == state
        assert b"secret-place" not in problem.body + page.body
    assert world.clicks == []
    assert world.kept == {}


async def test_expired_mark_of_a_renewed_link_does_not_count(world: World, wire: Wire) -> None:
    """The job marks rows; time decides."""
    world.lookup.add(
        link(
            "offer", "https://example.com/", status="expired", expires_at=START + timedelta(days=1)
        )
    )

    assert (await wire.ask("/offer")).status == 302


async def test_dead_links_can_look_like_unknown_ones(world: World, tmp_path: Path) -> None:
    world.lookup.add(link("old", "https://example.com/", status="deleted"))
    async with served(world.app(tmp_path, dead_link_status=404)) as connect:
        wire = await connect()
        dead, unknown = await wire.ask("/old"), await wire.ask("/odd")

    assert dead.status == unknown.status == 404
    assert dead.body.replace(b"old", b"odd") == unknown.body
    assert [line for line in dead.lines if not line.startswith(b"date")] == [
        line for line in unknown.lines if not line.startswith(b"date")
    ]


# -- secure links


async def test_secure_link_asks_for_sign_in_before_anything_else(world: World, wire: Wire) -> None:
    world.lookup.add(
        link("plan", "https://example.com/", restricted=True),
        link("old", "https://example.com/", restricted=True, status="deleted"),
    )

    for path in ("/plan", "/old", "/plan+", "/plan.qr"):
        page = await wire.ask(path, accept=HTML)
        assert page.status == 302
        assert page.header("location") == "/auth/sign-in"
        assert page.header("cache-control") == "no-store"
        program = await wire.ask(path)
        assert program.status == 401
        assert program.json["code"] == "SIGN_IN_REQUIRED"
    assert world.clicks == []
    assert world.states == [False] * 8


async def test_wish_is_kept_for_after_the_sign_in(world: World, wire: Wire, tmp_path: Path) -> None:
    world.lookup.add(link("plan", "https://example.com/", restricted=True))

    reply = await wire.ask("/plan/a%20b?x=1", accept=HTML)
    cookie = reply.header("set-cookie") or ""

    assert re.match(r"refract_return=[\w-]+; HttpOnly; Max-Age=900; Path=/; SameSite=lax$", cookie)
    rt = Runtime(
        settings=make_settings(tmp_path),
        db=NOTHING,
        clock=world.clock,
        ids=NOTHING,
        secret=Secret(b"s" * 40),
    )
    request: Any = type(
        "Request",
        (),
        {"cookies": {return_path.COOKIE.base_name: cookie.split(";")[0].partition("=")[2]}},
    )()
    assert return_path.get_return_path(request, rt) == "/plan/a%20b?x=1"


async def test_secure_link_opens_for_those_who_may_and_is_absent_for_others(
    world: World, wire: Wire
) -> None:
    world.lookup.add(link("plan", "https://example.com/", restricted=True))
    world.lookup.allowed = {7}

    assert (await wire.ask("/plan", cookie="as=7")).header("location") == "https://example.com/"
    assert (await wire.ask("/plan", cookie="as=-9")).status == 302
    foreign, absent = await wire.ask("/plan", cookie="as=8"), await wire.ask("/plum", cookie="as=8")

    assert foreign.status == 404
    assert foreign.body.replace(b"plan", b"plum") == absent.body
    assert world.clicks == [1, 1]
    assert world.kept == {}  # never kept ready for everybody


# -- misses


async def test_unknown_name_suggests_and_offers_to_create(world: World, wire: Wire) -> None:
    world.lookup.near = ["roadmap", "roadman"]

    problem = await wire.ask("/raodmap")
    stranger = await wire.ask("/raodmap", accept=HTML)
    member = await wire.ask("/raodmap", accept=HTML, cookie="as=7")

    assert problem.status == stranger.status == member.status == 404
    assert problem.json["code"] == "SHORT_LINK_NOT_FOUND"
    assert problem.json["suggestions"] == ["roadmap", "roadman"]
    assert stranger.json["template"] == "redirect/not_found.html"
    assert not stranger.json["creatable"]
    assert member.json["creatable"]
    assert member.json["suggestions"] == ["roadmap", "roadman"]
    assert world.lookup.suggested_to == [None, None, 7]
    assert world.states == [False] * 3


async def test_misses_are_limited_per_network_and_hits_are_not(
    world: World, tmp_path: Path
) -> None:
    world.lookup.add(link("real", "https://example.com/"))
    async with served(world.app(tmp_path, misses_per_minute=3)) as connect:
        wire = await connect()
        statuses = [(await wire.ask(f"/no{number}")).status for number in range(4)]
        refused = await wire.ask("/no9", accept=HTML)

        assert statuses == [404, 404, 404, 429]
        assert refused.status == 429
        assert int(refused.header("retry-after") or 0) == 20
        assert refused.header("ratelimit-limit") == "3"
        assert len(world.lookup.suggested_to) == 3  # a refused miss costs no search
        assert (await wire.ask("/real")).status == 302
        assert (await wire.ask("/no", x_network="elsewhere")).status == 404
        world.clock.advance(20)
        assert (await wire.ask("/no")).status == 404
        assert (await wire.ask("/no")).status == 429


async def test_no_limit_when_it_is_zero(world: World, tmp_path: Path) -> None:
    async with served(world.app(tmp_path, misses_per_minute=None)) as connect:
        wire = await connect()
        assert {(await wire.ask(f"/no{number}")).status for number in range(50)} == {404}


async def test_memory_for_misses_is_bounded(world: World, tmp_path: Path) -> None:
    rt = Runtime(
        settings=make_settings(tmp_path),
        db=NOTHING,
        clock=world.clock,
        ids=NOTHING,
        secret=Secret(b"s" * 40),
    )
    follow = RedirectApp(rt, world.lookup, PlainSurface())
    for number in range(25_000):
        await follow.misses.charge_network(str(number))

    assert len(follow.misses._buckets._own._buckets) <= 10_000


# -- lists, previews


async def test_list_is_handed_to_the_lists(world: World, wire: Wire) -> None:
    world.lookup.add(RedirectTarget(kind="list", id=5, name="books"))

    assert (await wire.ask("/books?edition=2")).body == b"list 5 follow   edition=2"
    assert (await wire.ask("/books/3")).body == b"list 5 follow  3 "
    assert (await wire.ask("/books.rss")).body == b"list 5 feed rss  "
    assert (await wire.ask("/books.JSON")).body == b"list 5 feed json  "
    assert b"<svg" in (await wire.ask("/books.qr")).body


async def test_an_entry_of_a_list_is_followed_counted_and_not_kept_ready(
    world: World, wire: Wire
) -> None:
    world.lookup.add(RedirectTarget(kind="list", id=5, name="books"))

    answer = await wire.ask("/books/1")

    assert (answer.status, answer.header("location")) == (302, "https://example.com/book")
    assert (world.clicks, world.kept) == ([51], {})
    assert (await wire.ask("/books/2")).status == 410
    assert (await wire.ask("/books/9")).status == 404
    assert world.clicks == [51]


async def test_feed_of_a_link_is_a_miss(world: World, wire: Wire) -> None:
    world.lookup.add(link("docs", "https://example.com/"))

    assert (await wire.ask("/docs.rss")).status == 404


async def test_preview_shows_where_it_leads_and_counts_nothing(world: World, wire: Wire) -> None:
    world.lookup.add(
        link("docs", "https://bücher.example/x", title="Books", created_at=START),
        link("gh", "https://github.example/{1}"),
    )

    page = await wire.ask("/Docs+", accept=HTML)
    program = await wire.ask("/docs%2B")
    filled = await wire.ask("/gh+/core", accept=HTML)
    bare = await wire.ask("/gh+")

    assert page.status == 200
    assert page.json["template"] == "redirect/preview.html"
    assert page.json["link"]["destination"] == "https://xn--bcher-kva.example/x"
    assert page.json["link"]["short_url"] == "http://go.test/docs"
    assert page.json["qr_url"] == "/docs.qr"
    assert program.json["destination"] == "https://xn--bcher-kva.example/x"
    assert program.json["created_at"] == "2026-06-01T12:00:00Z"
    assert filled.json["link"]["destination"] == "https://github.example/core"
    assert filled.json["link"]["short_url"] == "http://go.test/gh/core"
    assert bare.json["destination"] == "https://github.example/{1}"
    assert (await wire.ask("/gh+/a/b")).status == 404
    assert world.clicks == []


async def test_head_of_a_page_has_its_headers_and_no_body(world: World, wire: Wire) -> None:
    world.lookup.add(link("docs", "https://example.com/"))

    got, head = await wire.ask("/docs+"), await wire.ask("/docs+", "HEAD")

    assert head.header("content-length") == got.header("content-length") == str(len(got.body))
    assert (await wire.ask("/docs")).status == 302  # nothing was left on the connection


# -- the wire


async def test_no_bad_byte_in_any_location(world: World, wire: Wire) -> None:
    """Try every destination of the corpus with hostile extra paths and queries."""
    tails = [
        b"",
        b"/%0d%0aX-Evil:%201",
        b"/..%2f..%2fetc",
        b"//evil.example/x",
        b"/%E2%80%AE",
        b"/%FF%C3",
        b"?q=%0d%0aX:1&%C3%A4='\"<>",
        b"/a?b#c",
    ]
    for number, typed in enumerate(ACCEPTED):
        found = link(f"n{number}", typed, id=number, forward_query=True)
        world.lookup.add(found)
        assert found.template is not None
        for tail in tails:
            reply = await wire.ask(f"/n{number}".encode() + tail)
            assert reply.status in (302, 404)
            for line in reply.lines:
                assert re.fullmatch(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t -~]*", line), line
            assert not reply.values(b"x-evil")
            locations = reply.values(b"location")
            assert len(locations) == (reply.status == 302)
            for location in locations:
                assert re.fullmatch(rb"https?://[!-~]+", location)
                assert location.startswith(found.template.origin.encode() + b"/")
        plain = expand_template(found.template)
        if not isinstance(plain, ExpansionFailure):
            assert (await wire.ask(f"/n{number}")).values(b"location") == [plain.encode()]
