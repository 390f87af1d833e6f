"""The checks that a destination must pass."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.errors import ConfigurationError, RefractError
from refract.core.runtime import Runtime
from refract.links.safety.blocked_domains import block_domain, unblock_domain
from refract.links.safety.errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.links.safety.models import UrlCheck
from refract.links.safety.queries import purge_expired_checks
from refract.links.safety.safe_browsing import RETRY_INTERVAL_SECONDS, SafeBrowsingClient
from refract.links.safety.service import CheckedDestination, DestinationChecker, check_destinations
from tests.conftest import make_settings
from tests.links.safe_browsing import FakeSafeBrowsing, safe_browsing

KEY = "a-key-of-the-service"
DAY = 86_400


def configured(rt: Runtime, **given: Any) -> Runtime:
    return replace(rt, settings=rt.settings.model_copy(update=given))


def errors(answers: list[CheckedDestination | RefractError]) -> list[str | None]:
    return [answer.code if isinstance(answer, RefractError) else None for answer in answers]


@pytest.fixture
async def fake() -> AsyncIterator[FakeSafeBrowsing]:
    async with safe_browsing() as server:
        yield server


@pytest.fixture
async def checked(rt: Runtime, fake: FakeSafeBrowsing) -> AsyncIterator[DestinationChecker]:
    """Return a checker with a short timeout for Safe Browsing."""
    ours = configured(rt, safe_browsing_key=SecretStr(KEY), safe_browsing_url=fake.url)
    async with DestinationChecker(
        ours, SafeBrowsingClient(ours.settings, ours.clock, timeout=0.3)
    ) as safety:
        yield safety


async def test_each_destination_has_its_own_answer_in_order(rt: Runtime) -> None:
    async with DestinationChecker(rt) as safety:
        answers = await safety.check(
            [
                "https://example.com/a",
                "javascript:alert(1)",
                "http://GO.test./x",
                " https://Example.com/{1} ",
            ]
        )

    assert errors(answers) == [None, "INVALID_URL", "LINK_LOOP", None]
    assert isinstance(answers[0], CheckedDestination)
    assert not answers[0].flagged
    assert isinstance(answers[3], CheckedDestination)
    assert answers[0].template is None
    assert answers[3].href == "https://example.com/{1}"
    assert answers[3].template is not None
    assert answers[3].as_typed == " https://Example.com/{1} "


async def test_a_runtime_keeps_one_safety_for_its_life(rt: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "blocked.txt"
    path.write_text("evil.example\n")
    ours = configured(rt, blocklist_path=path)

    assert errors(
        await check_destinations(ours, ["https://evil.example/", "https://good.example/"])
    ) == ["BLOCKED_DESTINATION", None]
    assert ours.singleton(DestinationChecker) is ours.singleton(DestinationChecker)
    assert rt.singleton(DestinationChecker) is not ours.singleton(DestinationChecker)
    await ours.close()


async def test_refusal_names_the_field_and_the_reason(rt: Runtime) -> None:
    async with DestinationChecker(rt) as safety:
        with pytest.raises(InvalidUrl) as refused:
            await safety.check_one("ftp://example.com/")

    assert refused.value.status == 422
    assert refused.value.errors[0].field == "destination"
    assert "Only http:// and https://" in refused.value.errors[0].message


@pytest.mark.parametrize(
    ("base", "own"),
    [
        ("http://go.test", "http://go.test/x"),
        ("http://go.test", "https://GO.TEST/x"),
        ("http://go.test", "http://go.test:8000/x"),
        ("http://go.test", "http://go.test./"),
        ("http://go.test", "http://go%2Etest/"),
        ("http://go.test", "http://ｇｏ.ｔｅｓｔ/"),
        ("http://go.test", "http://go。test/{1}"),
        ("https://bücher.example", "https://xn--bcher-kva.example/a"),
        ("https://xn--bcher-kva.example", "https://BÜCHER.example/a"),
        ("http://10.1.2.3:8000", "http://0x0a010203:8000/"),
        ("http://10.1.2.3:8000", "http://[::ffff:10.1.2.3]:8000/"),
        ("http://[2001:db8::1]", "http://[2001:0DB8:0:0::1]:80/"),
        ("http://go.test", "http://127.0.0.1:8000/x"),
        ("http://go.test", "http://localhost:8000/x"),
        ("http://go.test", "http://127.9.9.9:8000/"),
        ("http://go.test", "http://[::1]:8000/"),
        ("http://go.test", "http://127.1:8000/"),
        ("http://go.test", "http://0.0.0.0:8000/x"),
        ("http://go.test", "http://0:8000/x"),
        ("http://go.test", "http://[::]:8000/x"),
        ("http://go.test", "http://[::ffff:0.0.0.0]:8000/x"),
    ],
)
async def test_links_to_ourselves_are_refused_however_they_are_spelt(
    clock: ManualClock, tmp_path: Path, base: str, own: str
) -> None:
    safety = DestinationChecker(_without_database(clock, make_settings(tmp_path, base_url=base)))

    assert isinstance(safety._parse_destination(own), LinkLoop)


@pytest.mark.parametrize(
    "other",
    [
        "http://go.test:8443/",  # another server on the same machine
        "http://10.1.2.3:9000/",
        "http://0.0.0.0:9000/",
        "http://go.test.example/",
        "http://sub.go.test/",
        "http://127.0.0.1:8001/",
        "http://localhost/",
        "http://ago.test/",
    ],
)
async def test_other_hosts_are_no_loop(clock: ManualClock, tmp_path: Path, other: str) -> None:
    safety = DestinationChecker(
        _without_database(clock, make_settings(tmp_path, base_url="http://go.test"))
    )

    assert isinstance(safety._parse_destination(other), CheckedDestination)


def _without_database(clock: ManualClock, settings: Any) -> Runtime:
    nothing: Any = SimpleNamespace()
    return Runtime(settings=settings, db=nothing, clock=clock, ids=nothing, secret=nothing)


# -- blocked domains


async def test_blocked_domain_covers_what_is_below_it_and_nothing_beside_it(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await block_domain(
            session, "*.Evil.Example.", reason="phishing", by=None, at=rt.clock.now()
        )
    asked = [
        "https://evil.example/",
        "https://a.b.EVIL.example./x",
        "https://notevil.example/",
        "https://example/",
        "https://evil.example:8443/{1}",
    ]

    async with DestinationChecker(rt) as safety:
        assert errors(await safety.check(asked)) == [
            "BLOCKED_DESTINATION",
            "BLOCKED_DESTINATION",
            None,
            None,
            "BLOCKED_DESTINATION",
        ]
        async with rt.db.write() as session:
            await unblock_domain(session, "evil.example", by=None, at=rt.clock.now())
        assert errors(await safety.check(asked)) == [None] * 5


async def test_idn_domain_is_blocked_in_either_spelling(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await block_domain(session, "Bücher.example", reason="", by=None, at=rt.clock.now())

    async with DestinationChecker(rt) as safety:
        with pytest.raises(BlockedDestination, match=r"xn--bcher-kva\.example"):
            await safety.check_one("https://www.xn--bcher-kva.example/")


async def test_a_thousand_destinations_take_a_handful_of_queries(rt: Runtime) -> None:
    asked: list[str] = []
    stop = count_statements(rt.db.read_engine, asked.append)
    async with DestinationChecker(rt) as safety:
        answers = await safety.check(
            [f"https://host{number % 50}.example/{number}" for number in range(1000)]
        )
    stop()

    assert errors(answers) == [None] * 1000
    assert len([statement for statement in asked if "blocked_domains" in statement]) == 1


# -- the blocklist file


async def test_block_list_is_read_again_when_it_changes(rt: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "blocked.txt"
    path.write_text("one.example\n")
    async with DestinationChecker(configured(rt, blocklist_path=path)) as safety:
        assert errors(await safety.check(["https://a.one.example/", "https://two.example/"])) == [
            "BLOCKED_DESTINATION",
            None,
        ]

        path.write_text("0.0.0.0 two.example  # hosts format\n")
        assert errors(await safety.check(["https://a.one.example/", "https://two.example/"])) == [
            None,
            "BLOCKED_DESTINATION",
        ]

        path.unlink()
        assert errors(await safety.check(["https://two.example/"])) == ["BLOCKED_DESTINATION"]

        path.write_text("three.example\n")
        assert errors(await safety.check(["https://two.example/", "https://three.example/"])) == [
            None,
            "BLOCKED_DESTINATION",
        ]


async def test_missing_block_list_stops_the_start_with_a_sentence(
    rt: Runtime, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        DestinationChecker(configured(rt, blocklist_path=tmp_path / "nowhere.txt"))

    assert "nowhere.txt cannot be read" in refused.value.message
    assert "REFRACT_BLOCKLIST_PATH" in refused.value.message


# -- Safe Browsing


async def test_dangerous_address_is_refused_and_remembered_for_a_week(
    checked: DestinationChecker, fake: FakeSafeBrowsing, clock: ManualClock
) -> None:
    fake.bad = {"https://bad.example/x"}

    answers = await checked.check(
        ["https://good.example/", "https://bad.example/x", "https://bad.example/x#part"]
    )

    assert errors(answers) == [None, "MALICIOUS_URL", "MALICIOUS_URL"]
    assert isinstance(answers[1], MaliciousUrl)
    assert "social engineering" in answers[1].message
    assert fake.questions == [["https://good.example/", "https://bad.example/x"]]
    assert fake.keys == [KEY]

    fake.bad = set()
    clock.advance(7 * DAY - 1)
    assert errors(await checked.check(["https://bad.example/x"])) == ["MALICIOUS_URL"]
    assert len(fake.questions) == 1
    clock.advance(1)
    assert errors(await checked.check(["https://bad.example/x"])) == [None]
    assert len(fake.questions) == 2


async def test_safe_address_is_remembered_for_a_day(
    checked: DestinationChecker, fake: FakeSafeBrowsing, clock: ManualClock
) -> None:
    await checked.check(["https://good.example/"])
    clock.advance(DAY - 1)
    await checked.check(["https://good.example/"])
    assert len(fake.questions) == 1

    clock.advance(1)
    fake.bad = {"https://good.example/"}
    assert errors(await checked.check(["https://good.example/"])) == ["MALICIOUS_URL"]
    clock.advance(1)
    assert errors(await checked.check(["https://good.example/"])) == ["MALICIOUS_URL"]
    assert len(fake.questions) == 2


async def test_template_is_checked_by_what_is_fixed(
    checked: DestinationChecker, fake: FakeSafeBrowsing
) -> None:
    await checked.check(["https://wiki.example/a/{1}/b?q={2}"])

    assert fake.questions == [["https://wiki.example/a/"]]


async def test_many_addresses_go_in_batches_of_five_hundred(
    checked: DestinationChecker, fake: FakeSafeBrowsing, rt: Runtime
) -> None:
    answers = await checked.check([f"https://host.example/{number}" for number in range(1001)])

    assert errors(answers) == [None] * 1001
    assert sorted(map(len, fake.questions)) == [1, 500, 500]
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(UrlCheck)) == 1001


@pytest.mark.parametrize("mode", ["slow", "500", "garbage", "other shape", "hang up"])
async def test_service_that_fails_lets_the_link_through_and_flags_it(
    checked: DestinationChecker, fake: FakeSafeBrowsing, rt: Runtime, mode: Any
) -> None:
    fake.mode = mode

    answer = await checked.check_one("https://unknown.example/")

    assert answer.flagged
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(UrlCheck)) == 0

    fake.mode = "malware"
    assert {
        href: found.reason for href, found in (await checked.recheck([answer.href])).items()
    } == {"https://unknown.example/": "dangerous"}
    assert errors(await checked.check(["https://unknown.example/"])) == ["MALICIOUS_URL"]


async def test_dead_service_is_left_alone_for_a_while(
    checked: DestinationChecker, fake: FakeSafeBrowsing, clock: ManualClock
) -> None:
    fake.mode = "500"
    for number in range(10):
        assert (await checked.check_one(f"https://host.example/{number}")).flagged
    assert len(fake.questions) == 3

    fake.mode = "ok"
    clock.advance(RETRY_INTERVAL_SECONDS - 0.1)
    assert (await checked.check_one("https://host.example/again")).flagged
    assert len(fake.questions) == 3
    clock.advance(0.1)
    assert not (await checked.check_one("https://host.example/again")).flagged
    assert not (await checked.check_one("https://host.example/more")).flagged


async def test_one_question_finds_out_whether_the_service_is_back(
    checked: DestinationChecker, fake: FakeSafeBrowsing, clock: ManualClock
) -> None:
    fake.mode = "500"
    for number in range(3):
        await checked.check_one(f"https://host.example/{number}")
    clock.advance(RETRY_INTERVAL_SECONDS)

    await asyncio.gather(
        *(checked.check_one(f"https://other.example/{number}") for number in range(5))
    )

    assert len(fake.questions) == 4


async def test_no_transaction_is_open_while_the_service_is_asked(
    checked: DestinationChecker, fake: FakeSafeBrowsing, rt: Runtime
) -> None:
    """SQLite has one connection for writing, which must be free during the request."""
    fake.mode = "slow"
    waiting = asyncio.create_task(checked.check_one("https://unknown.example/"))
    await asyncio.sleep(0.05)

    async with rt.db.write() as session:
        await block_domain(session, "elsewhere.example", reason="", by=None, at=rt.clock.now())
    assert not waiting.done()
    assert (await waiting).flagged


async def test_without_a_key_nobody_is_asked(rt: Runtime, fake: FakeSafeBrowsing) -> None:
    fake.mode = "malware"
    async with DestinationChecker(configured(rt, safe_browsing_url=fake.url)) as safety:
        assert not (await safety.check_one("https://example.com/")).flagged

    assert fake.questions == []


async def test_old_checks_are_forgotten_in_slices(
    checked: DestinationChecker, rt: Runtime, clock: ManualClock
) -> None:
    await checked.check([f"https://host.example/{number}" for number in range(5)])
    clock.advance(DAY - 1)
    async with rt.db.write() as session:
        assert await purge_expired_checks(session, clock.now()) == 0
    clock.advance(1)

    async with rt.db.write() as session:
        assert await purge_expired_checks(session, clock.now(), limit=3) == 3
        assert await purge_expired_checks(session, clock.now(), limit=3) == 2
        assert await purge_expired_checks(session, clock.now(), limit=3) == 0
