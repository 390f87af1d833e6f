"""L2 cache: one process reads for all; entries that Redis missed, lost or mixed up do no harm."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.errors import StoreUnavailable
from refract.core.ids import encode_base62
from refract.core.redis import RedisClient
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.links import service
from refract.links.changes import TargetChange
from refract.links.enums import Visibility
from refract.links.golinks.template import parse_template
from refract.links.models import LinkTotals
from refract.links.preview_cards import PreviewCard, format_card
from refract.links.rules.checks import check_rules
from refract.links.rules.schemas import LinkRulesIn
from refract.links.safety import blocked_domains
from refract.names.service import namespace_of
from refract.redirect.engine import warm_up
from refract.redirect.invalidation import ChangeBroadcaster
from refract.redirect.redis_cache import NAME_PREFIX, RedisLinkCache
from refract.redirect.resolver import RedirectTarget
from tests import make
from tests.client import by_key
from tests.conftest import make_settings
from tests.redirect.nodes import Place, open_place
from tests.waiting import eventually
from tools.servers import Redis as RedisServer

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture
def settings(database: str, tmp_path: Path, redis_server: RedisServer) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        role="redirect",
        misses_per_minute=None,
        redis_url=redis_server.url,
    )


@pytest.fixture
async def nodes(rt: Runtime) -> AsyncIterator[list[Place]]:
    """Two processes with one database and one Redis. Neither polls unless the test does it."""
    async with AsyncExitStack() as opened:
        places = []
        for _ in range(2):
            db = Database(rt.settings)
            opened.push_async_callback(db.close)
            mine = Runtime(
                settings=rt.settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret
            )
            opened.push_async_callback(mine.close)
            places.append(await opened.enter_async_context(open_place(mine)))
        yield places


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[RedisClient]:
    client = RedisClient(redis_server.url)
    yield client
    await client.close()


async def warm(rt: Runtime, ada: User, *nodes: Place) -> None:
    """Let each query the database once, so that it knows the epoch of blocked domains."""
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="warm")
    for node in nodes:
        await hear(node)
        await node.get("/warm")
        node.reader.asked.clear()


async def hear(node: Place) -> None:
    assert await node.engine.invalidator.poll()
    node.rt.clock.advance(1)  # type: ignore[attr-defined]  # a test's clock


async def test_what_one_has_read_the_other_need_not(
    nodes: list[Place], rt: Runtime, ada: User
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        link = await make.link(
            session, rt, ada, name="Road-Map", destination="https://example.com/{1=x}?a=b#c"
        )
    await warm(rt, ada, first, second)
    assert (await first.get("/road_map")).headers["location"] == "https://example.com/x?a=b#c"

    answer = await second.get("/ROAD-MAP/y")
    assert (answer.status_code, answer.headers["location"]) == (302, "https://example.com/y?a=b#c")
    assert (await second.get(f"/{encode_base62(link.id)}")).status_code == 302
    assert len(second.reader.asked) == 1  # the code was read by nobody before; the name was


async def test_a_change_kills_every_entry_however_it_was_asked_for(
    nodes: list[Place], rt: Runtime, ada: User, clock: ManualClock
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="x")
    await warm(rt, ada, first, second)
    for path in ("/x", f"/{encode_base62(link.id)}"):
        await first.get(path)
    async with rt.db.write() as session:
        await service.disable_link(session, make.who(ada), link.id, clock.now())
    shared = first.engine.redis_cache
    assert shared is not None
    await shared.invalidate([(link.id, 2)])

    for path in ("/x", f"/{encode_base62(link.id)}"):
        assert (await second.get(path)).status_code == 410
    assert len(second.reader.asked) == 2


async def test_what_a_process_has_heard_counts_though_redis_missed_it(
    nodes: list[Place], rt: Runtime, ada: User, clock: ManualClock
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="x")
    await warm(rt, ada, first, second)
    await first.get("/x")
    async with rt.db.write() as session:  # by a process that cannot reach Redis
        await service.disable_link(session, make.who(ada), link.id, clock.now())
    await hear(second)
    assert (await second.get("/x")).status_code == 410

    async with open_place(
        second.rt
    ) as newcomer:  # one that has just begun, and was not there to hear of it
        await newcomer.get("/warm")
        assert (await newcomer.get("/x")).status_code == 410


async def test_a_slow_reader_cannot_bring_an_old_version_back(
    nodes: list[Place], rt: Runtime, ada: User, clock: ManualClock
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="x")
    await warm(rt, ada, first, second)
    old = await first.engine.lookup.find("x")
    async with rt.db.write() as session:
        await service.disable_link(session, make.who(ada), link.id, clock.now())
    shared = first.engine.redis_cache
    assert old is not None
    assert shared is not None
    await shared.invalidate([(link.id, 2)])
    await shared.put("x", replace(old, asked_at=clock.monotonic()))

    assert (await second.get("/x")).status_code == 410


async def test_blocking_a_domain_makes_nothing_shared_count(
    nodes: list[Place], rt: Runtime, ada: User
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="x", destination="https://bad.example/")
    await warm(rt, ada, first, second)
    await first.get("/x")
    async with rt.db.write() as session:
        await blocked_domains.block_domain(
            session, "bad.example", reason="", by=None, at=rt.clock.now()
        )
    await hear(second)

    assert (await second.get("/x")).status_code == 410


@pytest.mark.parametrize("visibility", [Visibility.SECURE, Visibility.SIGNED_IN])
async def test_restricted_links_are_never_shared(
    nodes: list[Place], rt: Runtime, ada: User, redis: RedisClient, visibility: Visibility
) -> None:
    first, _ = nodes
    async with rt.db.write() as session:
        await make.link(
            session,
            rt,
            ada,
            name="hush",
            visibility=visibility,
            destination="https://secret.example/",
        )
        mine = by_key(await make.key(session, rt, ada))
    await warm(rt, ada, first)
    assert (await first.get("/hush")).status_code == 401
    assert (await first.get("/hush", headers=mine)).status_code == 302

    keys = [key for key in await redis.execute("KEYS", "refract:*") if b"least" not in key]
    assert keys == [b"refract:6:n:warm"]


async def test_nothing_lives_beyond_its_expiry(
    nodes: list[Place], rt: Runtime, ada: User, clock: ManualClock, redis: RedisClient
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        await make.link(
            session, rt, ada, name="soon", expires_at=clock.now() + timedelta(seconds=90)
        )
        await make.link(session, rt, ada, name="late")
    await warm(rt, ada, first, second)
    for name in ("soon", "late"):
        assert (await first.get(f"/{name}")).status_code == 302
    assert 0 < await redis.execute("PTTL", "refract:6:n:soon") <= 90_000
    assert 90_000 < await redis.execute("PTTL", "refract:6:n:late") <= 300_000
    clock.advance(90)  # Redis keeps its own time: it still has the entry

    assert (await second.get("/soon")).status_code == 410


async def test_without_the_database_what_redis_knows_is_answered(
    nodes: list[Place], rt: Runtime, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="x")
        await make.link(session, rt, ada, name="y")
    await warm(rt, ada, first)
    await first.get("/x")

    async def away(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(second.reader, "fetch_rows", away)
    for _ in range(3):
        assert (await second.get("/x")).status_code == 302
    assert (await second.get("/y")).status_code == 503


async def test_an_answer_for_another_name_is_refused(
    nodes: list[Place], rt: Runtime, ada: User, redis: RedisClient
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="a", destination="https://a.example/")
        await make.link(session, rt, ada, name="b", destination="https://b.example/")
    await warm(rt, ada, first, second)
    await first.get("/a")
    await redis.execute("SET", "refract:6:n:b", await redis.execute("GET", "refract:6:n:a"))

    assert (await second.get("/b")).headers["location"] == "https://b.example/"
    assert second.engine.redis_cache is not None
    assert second.engine.redis_cache.key_mismatches == 1


@pytest.mark.parametrize(
    "rubbish", [b"", b"x", b"1 2 3 {}", b"1 1 0 null", b'1 1 0 {"for":"b"}', b"\xff" * 40]
)
async def test_rubbish_in_redis_is_as_good_as_nothing(
    nodes: list[Place], rt: Runtime, ada: User, redis: RedisClient, rubbish: bytes
) -> None:
    first, _ = nodes
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="b")
    await warm(rt, ada, first)
    await redis.execute("SET", "refract:6:n:b", rubbish)

    assert (await first.get("/b")).status_code == 302


async def test_without_redis_everything_goes_on(
    nodes: list[Place], rt: Runtime, ada: User, redis_server: RedisServer
) -> None:
    first, _ = nodes
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="x")
    await warm(rt, ada, first)
    redis_server.stop()

    assert (await first.get("/x")).status_code == 302
    assert (await first.get("/unknown")).status_code == 404


async def test_news_travel_and_the_new_state_is_written_through(
    nodes: list[Place], rt: Runtime, ada: User
) -> None:
    first, second = nodes
    await warm(rt, ada, first, second)
    assert first.engine.broadcaster is not None
    assert second.engine.broadcaster is not None
    told: list[TargetChange] = []
    tasks = [
        asyncio.create_task(first.engine.broadcaster.broadcast(first.engine.lookup.refresh_shared)),
        asyncio.create_task(second.engine.broadcaster.receive(told.extend)),
    ]
    await asyncio.sleep(0.3)
    try:
        async with first.rt.db.write() as session:
            link = await make.link(session, first.rt, ada, name="fresh")
        await eventually(lambda: bool(told))
        assert told == [TargetChange(link.id, 1, ("fresh",))]
        shared = second.engine.redis_cache
        assert shared is not None
        await eventually(lambda: shared.get("fresh"))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_too_many_changes_to_remember_are_not_half_remembered(
    rt: Runtime, redis: RedisClient, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refract.redirect.redis_cache.MAX_MIN_VERSIONS", 10)
    shared = RedisLinkCache(redis, clock.now, clock.monotonic)
    shared.feed_stale = False
    found = RedirectTarget(
        kind="link",
        id=99,
        name="x",
        template=parse_template("https://example.com/"),
        version=1,
        asked_at=clock.monotonic(),
    )
    await shared.put("x", found)
    assert await shared.get("x") is not None
    for number in range(11):
        shared.note_version(number + 1, 5)

    assert await shared.get("x") is None
    clock.advance(301)
    assert await shared.get("x") is not None


async def test_words_that_are_no_news_are_passed_over(
    rt: Runtime, redis: RedisClient, clock: ManualClock
) -> None:
    news = ChangeBroadcaster(rt, redis, RedisLinkCache(redis, clock.now, clock.monotonic))
    for words in (b"", b"{}", b"[1]", b'["x", [[1]]]', b'["x", [["a", 1, []]]]', b"\xff"):
        assert news._parse_message(words) == []
    assert news._parse_message(b'["x", [[5, 2, ["a"]]]]') == [TargetChange(5, 2, ("a",))]


async def test_the_most_used_links_are_ready_before_they_are_asked_for(
    nodes: list[Place], rt: Runtime, ada: User, clock: ManualClock
) -> None:
    async with rt.db.write() as session:
        numbers = []
        for name in ("cold", "hot", "warmer", "hush", "dead"):
            visibility = Visibility.SECURE if name == "hush" else Visibility.UNLISTED
            numbers.append((await make.link(session, rt, ada, name=name, visibility=visibility)).id)
        await service.disable_link(session, make.who(ada), numbers[4], clock.now())
        session.add_all(
            LinkTotals(link_id=number, total_clicks=clicks, bot_clicks=0)
            for number, clicks in zip(numbers, (1, 9, 8, 7, 6), strict=True)
        )
    node = nodes[0]
    await hear(node)

    assert await warm_up(node.engine, node.reader, 4) == 2
    assert node.cached == {b"/hot", b"/warmer"}


async def test_what_is_held_or_flagged_is_never_shared(
    nodes: list[Place], rt: Runtime, ada: User, redis: RedisClient
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        eve = await make.person(session, rt, "eve")
        await make.link(session, rt, eve, name="held")
        flagged = await make.link(session, rt, ada, name="flagged")
        flagged.flagged, flagged.flag_reason = True, "unchecked"
    await warm(rt, ada, first, second)
    assert (await first.get("/held")).status_code == 302
    assert await redis.execute("EXISTS", f"{NAME_PREFIX}held") == 1
    assert (await first.get("/flagged")).status_code == 200
    assert await redis.execute("EXISTS", f"{NAME_PREFIX}flagged") == 0

    async with rt.db.write() as session:
        (await session.get_one(User, eve.id)).held_at = rt.clock.now()
        await blocked_domains.invalidate_all(session)
    for node in nodes:
        await hear(node)
        assert (
            await node.get("/held")
        ).status_code == 410  # though the old entry still lies in Redis
        assert node.cached == set()


async def test_an_entry_of_a_version_that_knows_fewer_reasons_is_not_believed(
    nodes: list[Place], rt: Runtime, ada: User, redis: RedisClient
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="x")
        link.flagged = True
    await warm(rt, ada, first, second)
    old = '{"for":"x","name":"x","by_code":false,"to":"https://example.com/","redirect":302,'
    old += (
        '"status":"active","expires":null,"forward":false,"blocked":false,"title":null,"made":null}'
    )
    await redis.execute("SET", "refract:n:x", f"{link.id} 1 0 {old}")

    assert (await second.get("/x")).status_code == 200


async def test_preview_cards_are_shared(nodes: list[Place], rt: Runtime, ada: User) -> None:
    first, second = nodes
    card = format_card(PreviewCard("Plans <2027>", None, "https://cdn.example/p.png"))
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="x", destination="https://default.example/")
        link.preview_card = card
    await warm(rt, ada, first, second)
    for node in nodes:
        shown = await node.get("/x", headers={"User-Agent": "Twitterbot/1.0"})
        assert "Plans &lt;2027&gt;" in shown.text
        assert (await node.get("/x")).headers["location"] == "https://default.example/"
    assert first.reader.asked
    assert not second.reader.asked  # it had the card from Redis


async def test_rules_are_shared_and_a_change_of_them_is_obeyed(
    nodes: list[Place], rt: Runtime, ada: User
) -> None:
    first, second = nodes
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, name="x", destination="https://default.example/")
    await warm(rt, ada, first, second)

    async def lead(*rules: dict[str, Any]) -> None:
        checked = await check_rules(rt, LinkRulesIn.model_validate({"rules": rules}).rules)
        async with rt.db.write() as session:
            space, caller = namespace_of(rt), make.who(ada)
            await service.replace_rules(session, space, caller, link.id, checked)
        for node in nodes:
            await hear(node)
            node.rt.clock.advance(11)  # type: ignore[attr-defined]  # past the change
            node.reader.asked.clear()

    async def follow(node: Place, languages: str) -> str:
        answer = await node.get("/x", headers={"Accept-Language": languages})
        return str(answer.headers["location"])

    german = {
        "destination": "https://de.example/{1=x}?a=b",
        "conditions": {"languages": ["de"], "before": "2090-01-01T00:00:00Z"},
    }
    await lead(german, {"destination": "https://fr.example/", "conditions": {"languages": ["fr"]}})
    for node in nodes:
        assert await follow(node, "de") == "https://de.example/x?a=b"
        assert await follow(node, "fr") == "https://fr.example/"
        assert await follow(node, "it") == "https://default.example/"
    assert first.reader.asked
    assert not second.reader.asked  # it had the rules from Redis

    await lead({"destination": "https://new.example/", "conditions": {"languages": ["de"]}})
    for node in nodes:
        assert await follow(node, "de") == "https://new.example/"
        assert await follow(node, "fr") == "https://default.example/"
    await lead()
    for node in nodes:
        assert await follow(node, "de") == "https://default.example/"
