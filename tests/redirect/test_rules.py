"""Rules of links: API, conditions, shares, and the same decision in every path."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from httpx import AsyncClient
from uvicorn.config import Config
from uvicorn.server import ServerState

from refract.app import WebNode
from refract.clicks.spool.format import decode_clicks, extract_domain, extract_rule
from refract.core.clock import ManualClock, to_nanoseconds
from refract.core.ip_addresses import get_network
from refract.core.runtime import Runtime
from refract.identity.models import Scope, User
from refract.links.models import Link
from refract.redirect.protocol import RedirectProtocol
from refract.redirect.resolver import RedirectTarget, TargetRule
from refract.redirect.rules import compile_rules
from refract.redirect.visitors import (
    Visitor,
    VisitorFacts,
    classify_agent,
    list_accepted_languages,
    parse_referrer_host,
)
from refract.web.connections import CONNECTIONS_STATE_KEY
from tests import make
from tests.client import by_key, on_sqlite
from tests.redirect.lanes import LANES, get_responder

DEFAULT = "https://example.com/default"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like"
    " Gecko) Version/17.5 Mobile/15E148 Safari/604.1"
)
WINDOWS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0"
)
PIXEL = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/126.0.0.0 Mobile Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0"
MAC = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
    " Version/17.5 Safari/605.1.15"
)
TABLET = (
    "Mozilla/5.0 (Linux; Android 13; SM-X200) AppleWebKit/537.36 (KHTML, like Gecko)"
    " SamsungBrowser/25.0 Chrome/121.0.0.0 Safari/537.36"
)
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
AGENTS = [IPHONE, WINDOWS, PIXEL, FIREFOX, MAC, TABLET, GOOGLEBOT, "curl/8.5.0", ""]


@pytest.fixture
async def key(rt: Runtime, ada: User) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, ada, Scope.READ, Scope.WRITE))


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        return await make.link(session, rt, ada, DEFAULT, name="shop")


async def put(
    client: AsyncClient, link: Link, key: dict[str, str], *rules: dict[str, Any], **more: str
) -> Any:
    return await client.put(
        f"/api/v1/links/{link.id}/rules", json={"rules": list(rules)}, headers=key | more
    )


def to(place: str, **conditions: Any) -> dict[str, Any]:
    return {"destination": f"https://example.com/{place}", "conditions": conditions}


async def follow(client: AsyncClient, path: str = "/shop", **headers: str) -> str:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await client.get(path, headers={"User-Agent": "", **names})
    assert answer.status_code == 302, answer.text
    return answer.headers["location"].removeprefix("https://example.com/")


async def test_the_first_rule_that_matches_decides(
    client: AsyncClient, link: Link, key: dict[str, str]
) -> None:
    saved = await put(
        client,
        link,
        key,
        to("de-phone", languages=["de"], devices=["mobile"]),
        to("phone", devices=["mobile", "tablet"]),
        to("ref", query=[{"name": "ref", "value": "news"}, {"name": "x"}]),
        to("news", referrers=["news.example"]),
    )
    assert saved.status_code == 200, saved.text
    assert [rule["number"] for rule in saved.json()["rules"]] == [1, 2, 3, 4]
    assert saved.headers["etag"].startswith('"2-')
    assert await follow(client) == "default"
    assert await follow(client, User_Agent=IPHONE) == "phone"
    assert await follow(client, User_Agent=TABLET) == "phone"
    assert await follow(client, User_Agent=PIXEL, Accept_Language="de-AT,en;q=0.8") == "de-phone"
    assert await follow(client, User_Agent=PIXEL, Accept_Language="en,de;q=0.8") == "phone"
    assert await follow(client, "/shop?ref=news&x") == "ref"
    assert await follow(client, "/shop?ref=new%73&x=") == "ref"
    assert await follow(client, "/shop?ref=news") == "default"
    assert await follow(client, Referer="https://m.news.example/story?1") == "news"
    assert await follow(client, Referer="https://badnews.example/") == "default"


async def test_links_are_created_with_rules(client: AsyncClient, key: dict[str, str]) -> None:
    given = {
        "destination": DEFAULT,
        "names": ["shop"],
        "rules": [{"number": 9, **to("a", devices=["mobile"])}, to("b", languages=["de"])],
    }
    made = await client.post("/api/v1/links", headers=key, json=given)
    assert made.status_code == 201, made.text
    stored = await client.get(f"/api/v1/links/{made.json()['id']}/rules", headers=key)
    assert [rule["number"] for rule in stored.json()["rules"]] == [1, 2]
    assert await follow(client, User_Agent=IPHONE) == "a"
    assert await follow(client, Accept_Language="de") == "b"
    assert await follow(client) == "default"

    same = given | {"names": [], "find_if_exists": True}
    assert (await client.post("/api/v1/links", headers=key, json=same)).status_code == 201
    plain = {"destination": DEFAULT, "names": ["plain"]}
    bad = plain | {"names": ["bad"], "rules": [to("a", share=5), to("b")]}
    loop = {"destination": "http://go.test/shop", "conditions": {"share": 5}}
    rows = [plain, bad, given | {"names": ["bulk"]}, plain | {"names": ["x"], "rules": [loop]}]
    done = await client.post("/api/v1/links/bulk", headers=key, json={"links": rows})
    results = done.json()["results"]
    assert [row["status"] for row in results] == [201, 422, 201, 422], done.text
    assert results[1]["error"]["errors"][0]["field"] == "rules.1"
    assert results[3]["error"]["errors"][0]["field"] == "rules.0.destination"
    assert await follow(client, "/bulk", User_Agent=IPHONE) == "a"
    assert await follow(client, "/plain", User_Agent=IPHONE) == "default"


async def test_rules_keep_their_numbers(
    client: AsyncClient, link: Link, key: dict[str, str]
) -> None:
    await put(client, link, key, to("a", share=10), to("b", share=20))
    moved = await put(
        client, link, key, {"number": 2, **to("b", share=5)}, to("c", devices=["bot"])
    )
    assert [(rule["number"], rule["destination"][-1]) for rule in moved.json()["rules"]] == [
        (2, "b"),
        (3, "c"),
    ]
    assert (await put(client, link, key)).json()["rules"] == []
    assert (await put(client, link, key, to("d", share=1))).json()["rules"][0]["number"] == 4
    again = await put(client, link, key, {"number": 2, **to("b", share=5)})
    assert (again.status_code, again.json()["code"]) == (422, "UNKNOWN_RULE")


async def test_earlier_rules_come_back(
    client: AsyncClient, link: Link, key: dict[str, str]
) -> None:
    await put(client, link, key, to("a", devices=["desktop"]))
    await put(client, link, key, to("b", devices=["desktop"]))
    path = f"/api/v1/links/{link.id}"
    assert (await client.post(f"{path}/history/2/revert", headers=key)).status_code == 200
    assert await follow(client) == "a"
    assert (await put(client, link, key, to("c", devices=["desktop"]))).json()["rules"][0][
        "number"
    ] == 3
    assert (await client.post(f"{path}/undo", headers=key)).status_code == 200
    assert await follow(client) == "a"
    changes = (await client.get(f"{path}/history", headers=key)).json()["items"][0]["changes"]
    assert [rule["destination"][-1] for rule in changes["rules"]["to"]] == ["a"]
    await client.post(f"{path}/history/1/revert", headers=key)
    assert await follow(client) == "default"


@on_sqlite
@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (to("a"), "rules.0"),
        (to("a", devices=["phone"]), "rules.0.conditions.devices.0"),
        (to("a", countries=["Germany"]), "rules.0.conditions.countries.0"),
        (to("a", languages=["*"]), "rules.0.conditions.languages.0"),
        (to("a", referrers=["http://x/"]), "rules.0.conditions.referrers.0"),
        (to("a", share=0), "rules.0.conditions.share"),
        (
            to("a", hours={"days": ["mon"], "begin": "9", "end": "17:00", "zone": "UTC"}),
            "rules.0.conditions.hours.begin",
        ),
        (
            to("a", hours={"days": ["mon"], "begin": "09:00", "end": "17:00", "zone": "Mars"}),
            "rules.0.conditions.hours.zone",
        ),
        (
            to("a", after="2030-01-02T00:00:00Z", before="2030-01-01T00:00:00Z"),
            "rules.0.conditions",
        ),
        ({"destination": "ftp://a/", "conditions": {"share": 5}}, "rules.0.destination"),
        ({"destination": "http://go.test/x", "conditions": {"share": 5}}, "rules.0.destination"),
        ({"destination": "https://аpple.com/", "conditions": {"share": 5}}, "rules.0.destination"),
    ],
)
async def test_bad_rules_are_refused(
    client: AsyncClient, link: Link, key: dict[str, str], rule: dict[str, Any], field: str
) -> None:
    answer = await put(client, link, key, rule)
    assert answer.status_code in (409, 422), answer.text
    assert [error["field"] for error in answer.json()["errors"]] == [field]


@on_sqlite
async def test_a_link_has_at_most_twenty_rules(
    client: AsyncClient, link: Link, key: dict[str, str]
) -> None:
    assert (await put(client, link, key, *[to("a", share=1)] * 20)).status_code == 200
    assert (await put(client, link, key, *[to("a", share=1)] * 21)).status_code == 422
    old = await put(client, link, key, **{"If-Match": '"1"'})
    assert old.status_code == 412


@on_sqlite
async def test_a_rule_to_a_blocked_domain_is_skipped(
    client: AsyncClient, rt: Runtime, link: Link, key: dict[str, str], root: User
) -> None:
    evil = {"destination": "https://evil.example/", "conditions": {"devices": ["desktop"]}}
    await put(client, link, key, evil, to("b", devices=["desktop"]))
    assert await follow(client) == "https://evil.example/"
    async with rt.db.write() as session:
        admin = by_key(await make.key(session, rt, root, Scope.WRITE, Scope.ADMIN))
    await client.post(
        "/api/v1/admin/blocked-domains", headers=admin, json={"domain": "evil.example"}
    )
    assert await follow(client) == "b"
    assert (await put(client, link, key, evil)).json()["code"] == "BLOCKED_DESTINATION"
    told = await client.post("/api/v1/resolve", headers=key, json={"path": "shop"})
    assert [rule["blocked"] for rule in told.json()["rules"]] == [True, False]


@on_sqlite
async def test_time_decides(
    client: AsyncClient, link: Link, key: dict[str, str], clock: ManualClock
) -> None:
    now = clock.now()
    day = now.astimezone(UTC).strftime("%a").lower()
    await put(
        client,
        link,
        key,
        to("later", after=(now + timedelta(days=3)).isoformat()),
        to("soon", before=(now + timedelta(hours=1)).isoformat()),
        to("day", hours={"days": [day], "begin": "00:00", "end": "23:59", "zone": "UTC"}),
    )
    assert await follow(client) == "soon"
    clock.advance(3600)
    assert await follow(client) == "day"
    clock.advance(86_400)
    assert await follow(client) == "default"
    clock.advance(2 * 86_400)
    assert await follow(client) == "later"


@on_sqlite
async def test_rules_apply_to_paths_and_to_other_views(
    client: AsyncClient, link: Link, key: dict[str, str]
) -> None:
    deep = {"destination": "https://example.com/{1}/m", "conditions": {"devices": ["mobile"]}}
    await put(client, link, key, deep)
    assert await follow(client, "/shop/x", User_Agent=IPHONE) == "x/m"
    assert await follow(client, "/shop/x") == "default/x"
    assert (await client.get("/shop", headers={"User-Agent": IPHONE})).status_code == 404
    assert (
        (await client.head("/shop/x", headers={"User-Agent": IPHONE}))
        .headers["location"]
        .endswith("x/m")
    )


@on_sqlite
async def test_strangers_see_the_decision_but_not_the_rules(
    client: AsyncClient, rt: Runtime, link: Link, key: dict[str, str], bob: User
) -> None:
    await put(client, link, key, to("phone", devices=["mobile"], countries=["AT"]))
    visitor = {"agent": IPHONE, "country": "at"}
    asked = {"path": "shop", "visitor": visitor}
    own = (await client.post("/api/v1/resolve", headers=key, json=asked)).json()
    assert (own["location"], own["rule"]) == ("https://example.com/phone", 1)
    assert own["rules"] == [
        {
            "number": 1,
            "destination": "https://example.com/phone",
            "matched": True,
            "blocked": False,
            "conditions": [
                {"condition": "devices", "matched": True, "visitor": "mobile"},
                {"condition": "countries", "matched": True, "visitor": "AT"},
            ],
        }
    ]
    assert own["headers"]["location"] == own["location"]
    asked["visitor"] = {"agent": IPHONE, "country": "DE"}
    other = (await client.post("/api/v1/resolve", headers=key, json=asked)).json()
    assert (other["location"], other["rule"]) == (DEFAULT, None)
    assert [part["matched"] for part in other["rules"][0]["conditions"]] == [True, False]
    async with rt.db.write() as session:
        stranger = by_key(await make.key(session, rt, bob, Scope.READ))
    told = (await client.post("/api/v1/resolve", headers=stranger, json=asked)).json()
    assert (told["location"], told["rules"]) == (DEFAULT, None)
    hidden = await client.get(f"/api/v1/links/{link.id}/rules", headers=stranger)
    assert hidden.status_code == 404


def test_agents() -> None:
    assert [tuple(classify_agent(agent.encode())) for agent in AGENTS] == [
        ("mobile", "ios", "safari"),
        ("desktop", "windows", "edge"),
        ("mobile", "android", "chrome"),
        ("desktop", "linux", "firefox"),
        ("desktop", "macos", "safari"),
        ("tablet", "android", "samsung"),
        ("bot", "other", "other"),
        ("bot", "other", "other"),
        ("desktop", "other", "other"),
    ]


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (b"", set()),
        (b"de-AT,de;q=0.9,en;q=0.8", {"de", "de-at"}),
        (b"*, en;q=1.0", {"en"}),
        (b"zh-Hant-TW;q=0.95", {"zh", "zh-hant", "zh-hant-tw"}),
        (b"fr;q=x,;q=1,,  It ; q=0.9 ", {"it"}),
        (b"\xff\xfe;q=1", {"ÿþ"}),
    ],
)
def test_languages(header: bytes, accepted: set[str]) -> None:
    assert list_accepted_languages(header) == accepted


@pytest.mark.parametrize(
    ("referrer", "host"),
    [
        (b"https://a.example/x", "a.example"),
        (b"HTTP://user:pw@A.Example.:80", "a.example"),
        (b"https://evil/@a.example", "evil"),
        (b"https://evil?@a.example", "evil"),
        (b"android-app://a.example/", ""),
        (b"a.example", ""),
    ],
)
def test_referrers(referrer: bytes, host: str) -> None:
    assert parse_referrer_host(referrer) == host


def _target(*shares: int) -> RedirectTarget:
    rules = tuple(
        TargetRule(number, None, {"share": share}) for number, share in enumerate(shares, 1)
    )
    return RedirectTarget("link", 77, "x", rules=rules)


@on_sqlite
async def test_shares_follow_each_other_and_change_daily(rt: Runtime) -> None:
    facts = VisitorFacts(rt)
    compiled = compile_rules(_target(20, 30, 60), facts)
    noon = to_nanoseconds(datetime(2027, 3, 1, 12, tzinfo=UTC))

    def decide(number: int, now_ns: int) -> int:
        visitor = Visitor(now_ns, b"\xc0" + number.to_bytes(2, "big"), FIREFOX.encode())
        return next((n for n, rule in enumerate(compiled, 1) if rule.matches(visitor)), 0)

    people = range(20_000)
    today = [decide(number, noon) for number in people]
    assert today == [decide(number, noon + 11 * 3600 * 10**9) for number in people]
    shares = {rule: count / len(people) for rule, count in Counter(today).items()}
    assert shares == pytest.approx({1: 0.2, 2: 0.3, 3: 0.5}, abs=0.015)
    tomorrow = [decide(number, noon + 86_400 * 10**9) for number in people]
    moved = sum(one != two for one, two in zip(today, tomorrow, strict=True)) / len(people)
    assert moved == pytest.approx(1 - (0.2**2 + 0.3**2 + 0.5**2), abs=0.02)


# The same decision by the lanes, the slow path and `POST /resolve`.

NETWORKS = ["203.0.113.7", "8.8.8.8", "193.0.0.1", "2001:4860::1", "unknown"]
LANGUAGES = ["", "de", "de-AT,de;q=0.9,en;q=0.8", "en-US,en;q=0.9", "fr;q=0.3", "*"]
REFERRERS = [
    *("", "https://news.example/a", "https://m.news.example:8443/?q", "nonsense"),
    f"https://{'u' * 600}@news.example/a",  # too long for the cache
]
QUERIES = ["", "ref=a", "ref=b&x=1", "x", "utm_source=mail&ref=a", "%72ef=a+b"]


def _draw_conditions(rng: Random) -> dict[str, Any]:
    def some(*values: Any) -> Any:
        return rng.sample(values, rng.randint(1, len(values) - 1))

    every = {
        "devices": lambda: some("desktop", "mobile", "tablet", "bot"),
        "systems": lambda: some("android", "ios", "macos", "windows", "linux", "other"),
        "browsers": lambda: some("chrome", "edge", "firefox", "safari", "other"),
        "countries": lambda: some("US", "NL", "DE", "XX"),
        "languages": lambda: some("de", "de-at", "en", "fr"),
        "query": lambda: [{"name": rng.choice(["ref", "x"]), "value": rng.choice([None, "a"])}],
        "referrers": lambda: some("news.example", "m.news.example", "other.example"),
        "before": lambda: rng.choice(["2020-01-01T00:00:00Z", "2040-01-01T00:00:00Z"]),
        "share": lambda: rng.randint(1, 100),
    }
    names = rng.sample(sorted(every), rng.choice([1, 1, 2, 3]))
    return {name: cast("Any", every[name])() for name in names}


class Transport:
    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.sent = b""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self.peer, 4711) if name == "peername" else default

    def write(self, data: bytes) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return False

    def close(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def _ask_lane(app: WebNode, lane: str, peer: str, data: bytes) -> tuple[str, int | None]:
    """Return destination and rule of a request, by the cached entry."""
    assert app.engine is not None
    connections, transport = app.engine.connections, Transport(peer)
    connections.create_responder = get_responder(lane)
    config = Config(cast("Any", None), ws="none", lifespan="off", log_config=None)
    protocol = RedirectProtocol(
        config, ServerState(), {CONNECTIONS_STATE_KEY: connections}, asyncio.get_running_loop()
    )
    protocol.connection_made(cast("Any", transport))
    protocol.data_received(data)
    (frame,) = connections.turn.frames
    connections.turn.commit()
    (click,) = decode_clicks(frame, 0)
    assert extract_domain(click.campaign) is None
    location = transport.sent.partition(b"location: ")[2].partition(b"\r\n")[0].decode()
    return location, extract_rule(click.campaign)


def _build_request(visit: SimpleNamespace) -> bytes:
    headers = {
        "Host": "go.test",
        "User-Agent": visit.agent,
        "Accept-Language": visit.languages,
        "Referer": visit.referrer,
    }
    lines = [f"{name}: {value}" for name, value in headers.items() if value]
    query = f"?{visit.query}" if visit.query else ""
    return "\r\n".join([f"GET /shop{query} HTTP/1.1", *lines, "", ""]).encode()


@on_sqlite
@pytest.mark.parametrize("seed", range(6))
async def test_all_paths_decide_alike(
    app: WebNode,
    client: AsyncClient,
    rt: Runtime,
    clock: ManualClock,
    link: Link,
    key: dict[str, str],
    seed: int,
) -> None:
    rng, taken = Random(seed), Counter[int | None]()
    facts = rt.singleton(VisitorFacts)
    await facts.load_places()
    for _ in range(12):
        rules = [to(str(n), **_draw_conditions(rng)) for n in range(rng.randint(1, 6))]
        saved = await put(client, link, key, *rules)
        assert saved.status_code == 200, saved.text
        clock.advance(11)  # what is read at the moment of a change is not cached
        allowed = {DEFAULT, *(rule["destination"] for rule in rules)}
        for _ in range(8):
            visit = SimpleNamespace(
                agent=rng.choice(AGENTS),
                languages=rng.choice(LANGUAGES),
                referrer=rng.choice(REFERRERS),
                query=rng.choice(QUERIES),
                peer=rng.choice(NETWORKS),
            )
            slow = await _ask_slow_path(app, visit)
            answers = {
                lane: _ask_lane(app, lane, visit.peer, _build_request(visit)) for lane in LANES
            }
            told = await _ask_resolve(client, key, facts, visit)
            assert set(answers.values()) == {answers["python"]}, (visit, rules)
            assert slow == answers["python"][0]
            assert slow in allowed
            taken[answers["python"][1]] += 1
            matched = [rule["number"] for rule in told["rules"] if rule["matched"]]
            assert told["rule"] == (matched[0] if matched else None)
            uses_share = any("share" in rule["conditions"] for rule in rules)
            if visit.peer == "unknown" or not uses_share:  # a seed is another visitor
                assert (told["location"], told["rule"]) == answers["python"], (visit, rules)
    assert taken[None] > 0  # the destination of the link, and rules
    assert taken.total() - taken[None] > 20


async def _ask_slow_path(app: WebNode, visit: SimpleNamespace) -> str:
    sent: list[Any] = []
    headers = [(b"host", b"go.test")]
    named = {
        "user-agent": visit.agent,
        "accept-language": visit.languages,
        "referer": visit.referrer,
    }
    headers += [(name.encode(), value.encode()) for name, value in named.items() if value]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/shop",
        "raw_path": b"/shop",
        "query_string": visit.query.encode(),
        "headers": headers,
        "client": (visit.peer, 4711),
        "state": {},
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app.api.state.redirects(scope, receive, send)
    return str(dict(sent[0]["headers"])[b"location"].decode())


async def _ask_resolve(
    client: AsyncClient, key: dict[str, str], facts: VisitorFacts, visit: SimpleNamespace
) -> Any:
    country = facts.find_country(Visitor(0, get_network(visit.peer)))
    asked = {
        "path": f"/shop?{visit.query}" if visit.query else "/shop",
        "visitor": {
            "agent": visit.agent,
            "languages": visit.languages,
            "referrer": visit.referrer,
            "country": country,
        },
    }
    answer = await client.post("/api/v1/resolve", headers=key, json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()
