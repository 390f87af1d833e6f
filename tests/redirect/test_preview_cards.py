"""Preview cards: a page for crawlers of chats, while people are redirected."""

import asyncio
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any, cast

import pytest
from httpx import AsyncClient, Response
from uvicorn.config import Config
from uvicorn.server import ServerState

from refract.app import WebNode
from refract.clicks.ingest.agents import BOT_DEVICE, detect_device
from refract.clicks.spool.reader import SpoolPosition, inspect_spool, read_batch
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import Scope, User
from refract.links.models import Link
from refract.links.preview_cards import PreviewCard, is_preview_crawler
from refract.redirect.protocol import RedirectProtocol
from refract.redirect.resolver import CardOutcome, RedirectOutcome
from refract.redirect.visitors import Visitor
from refract.web.connections import CONNECTIONS_STATE_KEY
from tests import make
from tests.client import by_key, on_sqlite
from tests.redirect.lanes import LANES, get_responder
from tests.redirect.test_rules import FIREFOX, IPHONE, MAC, PIXEL, TABLET, WINDOWS, Transport

SECRET = "https://secret.example/plans"
CARD = {
    "title": "Plans for 2027",
    "description": 'What\'s next & what is "not"',
    "image_url": "https://cdn.example/plans.png?w=1200&h=630",
}
CRAWLERS = [
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "Twitterbot/1.0",
    "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
    "TelegramBot (like TwitterBot)",
    "WhatsApp/2.23.20.0 A",
    "WhatsApp/2",  # Signal
    "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
    (
        "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5"
        " skype-url-preview@microsoft.com"  # Teams, too
    ),
    "Mastodon/4.3.0 (http.rb/5.2.0; +https://mastodon.example/) Bot",
    "http.rb/5.1.1 (Mastodon/4.2.0; +https://mastodon.example/) Bot",
    (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko)"
        " Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0"  # Messages
    ),
    "Synapse (bot; +https://github.com/matrix-org/synapse)",
    "Mozilla/5.0 (compatible; redditbot/1.0; +http://www.reddit.com/feedback)",
    "Mozilla/5.0 (compatible; Bluesky Cardyb/1.1; +mailto:support@bsky.app)",
    "Mozilla/5.0 (compatible; ZulipURLPreview/9.0; +https://zulip.example)",
    "Mattermost-Bot/1.1",
    "Akkoma 3.11.0; https://akkoma.example <admin@akkoma.example>; Bot",
    "SummalyBot/5.1.0",
    "Google (+https://developers.google.com/+/web/snippet/)",
]
PEOPLE = [
    *(IPHONE, WINDOWS, PIXEL, FIREFOX, MAC, TABLET, "", "curl/8.5.0"),
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    f"{PIXEL} [FB_IAB/FB4A;FBAV/450.0.0.0;]",
    f"{IPHONE} LinkedInApp",
    f"{FIREFOX} WhatsApp/2",  # no crawler begins like this
]


class _Page(HTMLParser):
    """The tags of a page by name, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.metas: dict[str, str] = {}
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = dict(attrs)
        if tag == "meta" and (name := facts.get("property") or facts.get("name")):
            self.metas[name] = facts["content"] or ""

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
async def key(rt: Runtime, ada: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, ada, Scope.READ, Scope.WRITE))


async def create(client: AsyncClient, key: dict[str, str], **more: Any) -> dict[str, Any]:
    given = {"destination": SECRET, "names": ["plans"], "preview_card": CARD, **more}
    made = await client.post("/api/v1/links", headers=key, json=given)
    assert made.status_code == 201, made.text
    return cast("dict[str, Any]", made.json())


async def visit(client: AsyncClient, agent: str, path: str = "/plans", **more: Any) -> Response:
    return await client.request(more.pop("method", "GET"), path, headers={"User-Agent": agent})


async def test_crawlers_get_the_card_and_people_the_redirect(
    client: AsyncClient, app: WebNode, clock: ManualClock, key: dict[str, str]
) -> None:
    await create(client, key)
    clock.advance(11)  # what is read at the moment of a change is not cached
    for agent in PEOPLE:
        answer = await visit(client, agent)
        assert (answer.status_code, answer.headers["location"]) == (302, SECRET), agent
    assert app.engine is not None
    assert b"/plans" in app.engine.cache.paths
    for agent in CRAWLERS:
        answer = await visit(client, agent)
        assert answer.status_code == 200, agent
        assert "secret.example" not in answer.text + str(answer.headers)
        page = _Page(answer.text)
        assert page.metas == {
            "og:type": "website",
            "og:url": "http://go.test/plans",
            "og:title": CARD["title"],
            "og:description": CARD["description"],
            "og:image": CARD["image_url"],
            "twitter:card": "summary_large_image",
            "description": CARD["description"],
            "robots": "noindex",
        }
        assert page.text.count(CARD["title"]) == 2  # title and heading
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["cache-control"] == "no-store"
        assert "set-cookie" not in answer.headers
    head = await visit(client, CRAWLERS[0], method="HEAD")
    assert (head.status_code, head.text) == (200, "")


def test_every_crawler_counts_as_a_bot() -> None:
    for agent in CRAWLERS:
        assert is_preview_crawler(agent.encode()), agent
        assert detect_device(agent) == BOT_DEVICE, agent
    assert not any(is_preview_crawler(agent.encode()) for agent in PEOPLE)


async def test_a_card_is_edited_removed_and_reverted(
    client: AsyncClient, clock: ManualClock, key: dict[str, str]
) -> None:
    made = await create(client, key)
    assert made["preview_card"] == CARD
    path = f"/api/v1/links/{made['id']}"

    async def patch(card: Any) -> dict[str, Any]:
        saved = await client.patch(path, headers=key, json={"preview_card": card})
        assert saved.status_code == 200, saved.text
        clock.advance(11)
        return cast("dict[str, Any]", saved.json()["preview_card"])

    only_title = {"title": "<b>New</b>", "description": "  ", "image_url": ""}
    assert await patch(only_title) == {
        "title": "<b>New</b>",
        "description": None,
        "image_url": None,
    }
    page = _Page((await visit(client, CRAWLERS[0])).text)
    assert page.metas["og:title"] == "<b>New</b>"
    assert page.metas["twitter:card"] == "summary"
    assert "og:image" not in page.metas

    untouched = await client.patch(path, headers=key, json={"title": "A"})
    assert untouched.json()["preview_card"]["title"] == "<b>New</b>"
    assert await patch(None) is None
    assert (await visit(client, CRAWLERS[0])).status_code == 302
    assert await patch({}) is None

    history = (await client.get(f"{path}/history", headers=key)).json()["items"]
    changes = [item["changes"].get("preview_card") for item in history]
    assert {"from": CARD, "to": {"title": "<b>New</b>"}} in changes
    assert {"from": {"title": "<b>New</b>"}, "to": None} in changes
    back = await client.post(f"{path}/history/1/revert", headers=key)
    assert back.json()["preview_card"] == CARD
    clock.advance(11)
    assert (await visit(client, CRAWLERS[0])).status_code == 200


@on_sqlite
@pytest.mark.parametrize(
    "card",
    [
        {"image_url": "http://cdn.example/a.png"},
        {"image_url": "javascript:alert(1)"},
        {"image_url": "https://user:pass@cdn.example/a.png"},
        {"image_url": "https://cdn.example/" + "a" * 3000},
        {"title": "x" * 201},
        {"description": "x" * 501},
        {"colour": "red"},
        "text",
    ],
)
async def test_wrong_cards_are_refused(client: AsyncClient, key: dict[str, str], card: Any) -> None:
    given = {"destination": SECRET, "preview_card": card}
    refused = await client.post("/api/v1/links", headers=key, json=given)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["field"].startswith("preview_card"), refused.text


@on_sqlite
async def test_no_card_of_a_link_that_does_not_redirect(
    client: AsyncClient, clock: ManualClock, rt: Runtime, key: dict[str, str]
) -> None:
    """Neither a card nor the destination: of the link, nor that of other times."""
    tomorrow = rt.clock.now() + timedelta(days=1)
    later = tomorrow + timedelta(days=1)
    await create(
        client,
        key,
        names=["soon"],
        starts_at=tomorrow.isoformat(),
        expires_at=later.isoformat(),
    )
    await create(client, key, names=["locked"], password="open sesame")
    await create(client, key, names=["own"], visibility="secure")
    off = await create(client, key, names=["off"])
    stopped = await client.post(f"/api/v1/links/{off['id']}/disable", headers=key)
    assert stopped.status_code == 200, stopped.text
    for agent in CRAWLERS[:3]:
        for path in ("/soon", "/locked", "/own", "/off"):
            for accept in ("text/html", "application/json"):
                answer = await client.get(path, headers={"User-Agent": agent, "Accept": accept})
                said = answer.text + str(answer.headers)
                assert "secret.example" not in said, path
                assert CARD["title"] not in said, path
    clock.advance(86_400)
    assert (await visit(client, CRAWLERS[0], "/soon")).status_code == 200
    clock.advance(86_400)
    assert (await visit(client, CRAWLERS[0], "/soon")).status_code == 410


async def test_a_card_comes_before_rules_and_resolve_says_so(
    client: AsyncClient, clock: ManualClock, key: dict[str, str]
) -> None:
    rule = {"destination": "https://bots.example/", "conditions": {"devices": ["bot"]}}
    await create(client, key, rules=[rule])
    assert (await visit(client, CRAWLERS[0])).status_code == 200
    assert (await visit(client, "Googlebot/2.1")).headers["location"] == "https://bots.example/"
    asked = {"path": "/plans", "visitor": {"agent": CRAWLERS[0]}}
    told = (await client.post("/api/v1/resolve", headers=key, json=asked)).json()
    assert (told["outcome"], told["status"], told["location"]) == ("card", 200, None)
    asked["visitor"] = {"agent": FIREFOX}
    told = (await client.post("/api/v1/resolve", headers=key, json=asked)).json()
    assert (told["outcome"], told["location"]) == ("redirect", SECRET)


def _ask_lane(app: WebNode, lane: str, agent: str) -> tuple[bytes, int]:
    """Return what the lane sends by itself, and how many clicks it counts."""
    assert app.engine is not None
    connections, transport = app.engine.connections, Transport("203.0.113.7")
    connections.create_responder = get_responder(lane)
    config = Config(cast("Any", _drop), ws="none", lifespan="off", log_config=None)
    config.load()
    protocol = RedirectProtocol(
        config, ServerState(), {CONNECTIONS_STATE_KEY: connections}, asyncio.get_running_loop()
    )
    protocol.connection_made(cast("Any", transport))
    request = f"GET /plans?a=b HTTP/1.1\r\nHost: go.test\r\nUser-Agent: {agent}\r\n\r\n"
    protocol.data_received(request.encode())
    counted = len(connections.turn.frames)
    connections.turn.commit()
    return transport.sent, counted


async def _drop(_scope: object, _receive: object, _send: object) -> None:
    """Answer nothing: the lane is asked what it answers by itself."""


@on_sqlite
@pytest.mark.parametrize("lane", LANES)
async def test_lanes_leave_crawlers_to_the_slow_path(
    client: AsyncClient, app: WebNode, key: dict[str, str], clock: ManualClock, lane: str
) -> None:
    await create(client, key)
    clock.advance(11)
    await visit(client, FIREFOX)
    for agent in CRAWLERS:
        assert _ask_lane(app, lane, agent) == (b"", 0), agent
    for agent in PEOPLE:
        sent, counted = _ask_lane(app, lane, agent)
        assert (f"location: {SECRET}\r\n".encode() in sent, counted) == (True, 1), agent


@on_sqlite
async def test_a_plain_link_has_no_rules_in_the_cache(
    client: AsyncClient, app: WebNode, rt: Runtime, clock: ManualClock, ada: User
) -> None:
    async with rt.db.write() as session:
        link: Link = await make.link(session, rt, ada, SECRET, name="plain")
    assert link.preview_card is None
    clock.advance(11)
    assert (await visit(client, CRAWLERS[0], "/plain")).headers["location"] == SECRET
    assert app.engine is not None
    assert app.engine.cache.paths[b"/plain"].rules is None


@on_sqlite
async def test_stale_links_show_their_card(
    client: AsyncClient, app: WebNode, key: dict[str, str], clock: ManualClock
) -> None:
    await create(client, key)
    clock.advance(11)
    await visit(client, FIREFOX)
    engine = app.engine
    assert engine is not None
    engine.cache.mark_stale()

    def find(agent: str) -> Any:
        visitor = Visitor(clock.now_ns(), agent=agent.encode())
        return engine.find_stale(b"/plans", b"", lambda: visitor)

    shown, followed = find(CRAWLERS[0]), find(FIREFOX)
    assert isinstance(shown, CardOutcome)
    assert shown.found.preview_card == PreviewCard(**CARD)
    assert isinstance(followed, RedirectOutcome)
    assert followed.href == SECRET


@on_sqlite
async def test_visits_of_crawlers_are_counted_once(
    client: AsyncClient, app: WebNode, key: dict[str, str]
) -> None:
    made = await create(client, key)
    engine = app.engine
    assert engine is not None
    before = engine.spool.written
    await visit(client, CRAWLERS[0])
    await visit(client, CRAWLERS[0], method="HEAD")
    assert engine.spool.written == before + 1
    spool = inspect_spool(engine.spool.directory)
    (click,) = read_batch(spool, SpoolPosition(), 1 << 20).clicks
    assert (click.target, click.agent) == (int(made["id"]), CRAWLERS[0].encode())


async def test_search_engines_are_asked_not_to_list_a_link(
    client: AsyncClient, app: WebNode, clock: ManualClock, key: dict[str, str]
) -> None:
    made = await create(
        client,
        key,
        noindex=True,
        rules=[{"destination": "https://bots.example/", "conditions": {"devices": ["bot"]}}],
    )
    assert made["noindex"] is True
    clock.advance(11)
    for agent in (FIREFOX, "Googlebot/2.1"):
        assert (await visit(client, agent)).headers["x-robots-tag"] == "noindex"
    asked = {"path": "/plans", "visitor": {"agent": FIREFOX}}
    told = (await client.post("/api/v1/resolve", headers=key, json=asked)).json()
    assert told["headers"]["x-robots-tag"] == "noindex"
    sent, _ = _ask_lane(app, "python", FIREFOX)
    assert b"x-robots-tag: noindex\r\n" in sent
    path = f"/api/v1/links/{made['id']}"
    shown = await client.patch(path, headers=key, json={"noindex": False})
    assert shown.json()["noindex"] is False
    assert "x-robots-tag" not in (await visit(client, FIREFOX)).headers
    history = (await client.get(f"{path}/history", headers=key)).json()["items"]
    assert history[0]["changes"] == {"noindex": {"from": True, "to": False}}
    undone = await client.post(f"{path}/undo", headers=key)
    assert undone.json()["noindex"] is True
    refused = await client.patch(path, headers=key, json={"noindex": None})
    assert refused.status_code == 422
