"""The facts that are read from a request, and those that are not."""

import pytest

from refract.clicks.ingest import agents as ingest_agents
from refract.clicks.ingest.agents import MAX_CACHED_AGENTS, UserAgent, UserAgentParser
from refract.clicks.ingest.facts import (
    FACT_COLUMNS,
    FactsExtractor,
    hash_visitor,
    parse_referrer_host,
    to_microseconds,
)
from refract.clicks.ingest.places import PlaceLookup
from refract.clicks.queries import FACT_MODELS, list_fact_columns
from refract.clicks.rollups.sketches import HASH_BYTES
from refract.clicks.spool.format import (
    LINK_CLICK,
    PREFETCH,
    PRIVATE,
    Click,
    decode_clicks,
    encode_frame,
)
from refract.core.clock import SystemClock

CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.6099.71"
    " Safari/537.36"
)


@pytest.fixture(scope="module")
def agents() -> UserAgentParser:
    return UserAgentParser()


@pytest.fixture
def reader(agents: UserAgentParser) -> FactsExtractor:
    return FactsExtractor(agents, PlaceLookup(None, SystemClock()))


def sent(
    flags: int = 0,
    agent: bytes = CHROME.encode(),
    referrer: bytes = b"https://A.example/x?secret=1",
    query: bytes = b"utm_campaign=c",
) -> Click:
    (click,) = decode_clicks(
        encode_frame(LINK_CLICK, 42, 1_000_000, flags, b"\x08\x08\x08", agent, referrer, query), 0
    )
    return click


def named(reader: FactsExtractor, click: Click) -> dict[str, object]:
    """Return the facts of a click by name, with those that it shares with others."""
    facts = dict(zip(FACT_COLUMNS, reader.extract_facts(click)[0], strict=True))
    for reference, model in FACT_MODELS.items():
        fact_id, names = facts.pop(reference), list_fact_columns(model)
        values = (None,) * len(names) if fact_id is None else reader.unsaved[model][fact_id]
        facts |= dict(zip(names, values, strict=True))
    return facts


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        (CHROME, "desktop"),
        ("", "desktop"),
        ("who knows", "desktop"),
        (
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15"
                " Version/17.0 Mobile/15E148 Safari/604.1"
            ),
            "mobile",
        ),
        (
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15"
                " Mobile/15E148 [FBAN/FBIOS;FBAV/440.0]"
            ),
            "mobile",
        ),
        (
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 16_0 like Mac OS X) AppleWebKit/605.1.15"
                " Mobile/20A362 [Pinterest/iOS]"
            ),
            "mobile",
        ),
        (
            (
                "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/120.0.0.0"
                " Mobile Safari/537.36"
            ),
            "mobile",
        ),
        (
            (
                "Mozilla/5.0 (Linux; Android 9; CUBOT_X19) AppleWebKit/537.36 Chrome/90.0.0.0"
                " Mobile Safari/537.36"
            ),
            "mobile",
        ),
        (
            (
                "Mozilla/5.0 (Linux; Android 13; SM-T870) AppleWebKit/537.36 Chrome/114.0.0.0"
                " Safari/537.36"
            ),
            "tablet",
        ),
        (
            (
                "Mozilla/5.0 (iPad; CPU OS 16_5 like Mac OS X) AppleWebKit/605.1.15 Version/16.5"
                " Mobile/15E148 Safari/604.1"
            ),
            "tablet",
        ),
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "bot"),
        ("Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "bot"),
        ("WhatsApp/2.23.20.0", "bot"),
        ("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "bot"),
        ("TelegramBot (like TwitterBot)", "bot"),
        ("Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)", "bot"),
        (
            (
                "Mozilla/5.0 (Macintosh) AppleWebKit/537.36 (KHTML, like Gecko)"
                " HeadlessChrome/120.0.0.0 Safari/537.36"
            ),
            "bot",
        ),
        (
            (
                "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2;"
                " +https://openai.com/gptbot)"
            ),
            "bot",
        ),
        ("curl/8.5.0", "bot"),
        ("python-requests/2.31.0", "bot"),
        ("Go-http-client/1.1", "bot"),
        ("UptimeRobot/2.0", "bot"),
    ],
)
def test_devices(agents: UserAgentParser, agent: str, device: str) -> None:
    assert agents[agent.encode()].device == device


def test_browser_and_system_have_their_versions(agents: UserAgentParser) -> None:
    agent = agents[
        b"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15"
        b" Version/17.4.1 Mobile/15E148 Safari/604.1"
    ]

    assert agent[3:7] == ("Mobile Safari", "17.4.1", "iOS", "17.5")
    assert agents[b"\xff\x00who"].text == "�who"
    assert agents[b""] == UserAgent(None, b"\0", "desktop", breakdown_keys=("adesktop",))


def test_patterns_are_dropped_when_no_agent_is_new_and_loaded_for_the_next_new_one(
    agents: UserAgentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_agents, "PATTERNS_IDLE_SECONDS", 0.0)
    known = agents[CHROME.encode()]
    assert agents.is_idle
    agents.drop_patterns()

    agents.load_patterns([CHROME.encode(), b""])
    after_known = agents.has_patterns
    agents.load_patterns([CHROME.encode(), b"Mozilla/5.0 (X11; rv:141.0) Firefox/141.0"])

    assert (after_known, agents.has_patterns) == (False, True)
    assert agents[CHROME.encode()] == known


def test_a_flood_of_invented_agents_is_not_remembered() -> None:
    flooded = UserAgentParser()
    for number in range(MAX_CACHED_AGENTS + 10):
        flooded[b"%d" % number]

    assert len(flooded) == 10


def test_what_is_kept_of_a_person(reader: FactsExtractor) -> None:
    assert named(reader, sent()) == {
        "kind": LINK_CLICK,
        "target_id": 42,
        "domain": None,
        "language": None,
        "rule": None,
        "bot": False,
        "private": False,
        "network": "8.8.8.0",
        "country_code": "US",
        "country": "United States",
        "city": None,
        "latitude": None,
        "longitude": None,
        "user_agent": CHROME,
        "referrer": "https://A.example/x",
        "referrer_host": "a.example",
        "utm_source": None,
        "utm_medium": None,
        "utm_campaign": "c",
        "utm_term": None,
        "utm_content": None,
        "device": "desktop",
        "browser": "Chrome",
        "browser_version": "120.0.6099",
        "system": "Linux",
        "system_version": None,
    }


def test_of_who_wishes_so_nothing_is_kept(reader: FactsExtractor) -> None:
    row, bot, private, parts, visitor = reader.extract_facts(sent(PRIVATE))

    kept = {name: value for name, value in zip(FACT_COLUMNS, row, strict=True) if value is not None}
    assert kept == {
        "kind": LINK_CLICK,
        "target_id": 42,
        "bot": False,
        "private": True,
        "device": "desktop",
    }
    assert (bot, private, parts, visitor) == (False, True, (), b"")


@pytest.mark.parametrize(
    "click", [sent(PREFETCH), sent(agent=b"curl/8.5.0"), sent(PREFETCH | PRIVATE)]
)
def test_bots_are_in_no_breakdown_and_are_no_visitors(reader: FactsExtractor, click: Click) -> None:
    row, bot, _, parts, visitor = reader.extract_facts(click)

    assert bot
    assert dict(zip(FACT_COLUMNS, row, strict=True))["device"] == "bot"
    assert (parts, visitor) == ((), b"")


def test_visitors_differ_by_network_and_agent_and_by_the_salt(reader: FactsExtractor) -> None:
    one, other = reader.extract_facts(sent())[4], reader.extract_facts(sent(agent=b"else"))[4]

    assert one != other
    assert hash_visitor(one, b"a" * 32) == hash_visitor(one, b"a" * 32)
    assert (
        len(
            {
                hash_visitor(one, b"a" * 32),
                hash_visitor(other, b"a" * 32),
                hash_visitor(one, b"b" * 32),
            }
        )
        == 3
    )
    assert len(hash_visitor(one, b"a" * 32)) == HASH_BYTES == 5


@pytest.mark.parametrize(
    ("referrer", "host"),
    [
        ("", "direct"),
        ("https://News.Example/a", "news.example"),
        ("android-app://com.slack/", "com.slack"),
        ("nonsense", "direct"),
        ("http://[", "direct"),
    ],
)
def test_referring_hosts(referrer: str, host: str) -> None:
    assert parse_referrer_host(referrer) == host


def test_a_clock_that_runs_ahead_is_not_believed() -> None:
    now = 1_000_000_000
    assert to_microseconds((now + 60_000_000) * 1000, now) == now + 60_000_000
    assert to_microseconds((now + 60_000_001) * 1000, now) == now
    assert to_microseconds(-5, now) == now
