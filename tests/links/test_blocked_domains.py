"""Blocked domains: who, why, when, and the epoch that invalidates copies."""

import asyncio

import pytest
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.changes import ALL_TARGETS, CHANGES_TOPIC, TargetChange
from refract.links.models import FeedEntry
from refract.links.safety.blocked_domains import (
    block_domain,
    list_blocked_domains,
    load_snapshot,
    read_epoch,
    unblock_domain,
)
from refract.links.safety.blocklist import BlockedDomainSnapshot, canonicalise_domain, parse_domains
from refract.links.safety.errors import DomainNotBlocked, InvalidDomain
from refract.links.safety.models import BlockedDomain


async def test_who_blocked_a_domain_why_and_when_is_kept(rt: Runtime, clock: ManualClock) -> None:
    now = clock.now()
    async with rt.db.write() as session:
        ada = User(
            id=7,
            issuer="local",
            subject="ada",
            email="ada@example.com",
            email_folded="ada@example.com",
            created_at=now,
            last_sync_at=now,
        )
        session.add(ada)
        await session.flush()
        await block_domain(session, "EVIL.example", reason="phishing", by=ada.id, at=now)
    clock.advance(60)
    async with rt.db.write() as session:
        await block_domain(
            session, "evil.example.", reason="still phishing", by=ada.id, at=clock.now()
        )

    async with rt.db.read() as session:
        rows = list(await session.scalars(select(BlockedDomain)))
    assert [(row.domain, row.reason, row.blocked_by, row.blocked_at) for row in rows] == [
        ("evil.example", "still phishing", 7, clock.now())
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        " ",
        "a b",
        "exa mple.com",
        "https://evil.example/x",
        "evil.example/x",
        "user@evil.example",
        "evil.example:80",
        ".",
        "%zz",
    ],
)
async def test_what_is_no_domain_is_refused(rt: Runtime, wrong: str) -> None:
    with pytest.raises(InvalidDomain):
        async with rt.db.write() as session:
            await block_domain(session, wrong, reason="", by=None, at=rt.clock.now())

    async with rt.db.read() as session:
        assert await read_epoch(session) == 0


async def test_every_change_moves_the_epoch_and_a_failed_one_does_not(rt: Runtime) -> None:
    seen = []
    for domain in ("a.example", "b.example"):
        async with rt.db.write() as session:
            await block_domain(session, domain, reason="", by=None, at=rt.clock.now())
        async with rt.db.read() as session:
            seen.append(await read_epoch(session))
    async with rt.db.write() as session:
        await unblock_domain(session, "A.example", by=None, at=rt.clock.now())
    with pytest.raises(DomainNotBlocked):
        async with rt.db.write() as session:
            await unblock_domain(session, "a.example", by=None, at=rt.clock.now())
    async with rt.db.read() as session:
        seen.append(await read_epoch(session))

    assert seen == [1, 2, 3]


async def test_blocking_at_the_same_moment_loses_nothing(rt: Runtime) -> None:
    async def block(domain: str) -> None:
        async with rt.db.write() as session:
            await block_domain(session, domain, reason="", by=None, at=rt.clock.now())

    await asyncio.gather(*(block(f"host{number % 4}.example") for number in range(8)))

    async with rt.db.read() as session:
        assert await read_epoch(session) == 8
        assert len(list(await session.scalars(select(BlockedDomain)))) == 4


async def test_every_change_tells_the_caches_to_forget_everything(rt: Runtime) -> None:
    told: list[TargetChange] = []
    with rt.signals.subscribe(CHANGES_TOPIC, told.extend):
        async with rt.db.write() as session:
            await block_domain(session, "evil.example", reason="", by=None, at=rt.clock.now())
            assert told == []
        async with rt.db.write() as session:
            await unblock_domain(session, "evil.example", by=None, at=rt.clock.now())

    assert [change.target_id for change in told] == [ALL_TARGETS] * 2
    async with rt.db.read() as session:
        assert list(await session.scalars(select(FeedEntry.target_id))) == [ALL_TARGETS] * 2


async def test_blocked_domains_are_listed_by_name(rt: Runtime) -> None:
    for name in ("c.example", "a.example", "d.example", "b.example"):
        async with rt.db.write() as session:
            await block_domain(session, name, reason="", by=None, at=rt.clock.now())

    async with rt.db.read() as session:
        everything = await list_blocked_domains(session)
        some = await list_blocked_domains(session, limit=3)

    assert [row.domain[0] for row in everything] == ["a", "b", "c", "d"]
    assert [row.domain[0] for row in some] == ["a", "b", "c"]


async def test_copy_in_memory_knows_when_it_is_old(rt: Runtime) -> None:
    blocked = BlockedDomainSnapshot()
    async with rt.db.read() as session:
        assert blocked.is_current(await read_epoch(session))
    async with rt.db.write() as session:
        await block_domain(session, "evil.example", reason="", by=None, at=rt.clock.now())

    async with rt.db.read() as session:
        assert not blocked.is_current(await read_epoch(session))
        blocked = await load_snapshot(session)
        assert blocked.is_current(await read_epoch(session))
    assert blocked.match("www.evil.example") == "evil.example"
    assert blocked.match("evil.example.org") is None


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        ("example.com", "example.com"),
        (" Example.COM. ", "example.com"),
        ("*.example.com", "example.com"),
        (".example.com", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("wiki", "wiki"),
        ("a_b.example", "a_b.example"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("203.0.113.7", "203.0.113.7"),
        ("2001:DB8::1", "[2001:db8::1]"),
        ("[::1]", "[::1]"),
        ("foo.123", None),
        ("[::1]:80", None),
        ("x" * 300, None),
        ("a..b", None),
    ],
)
def test_domains_have_one_spelling(typed: str, canonical: str | None) -> None:
    assert canonicalise_domain(typed) == canonical


def test_hosts_format_and_domains_can_be_mixed() -> None:
    text = """\
# a comment
127.0.0.1 localhost
::1 localhost ip6-localhost ip6-loopback
255.255.255.255 broadcasthost
fe80::1%lo0 localhost
0.0.0.0 0.0.0.0
0.0.0.0 ads.example tracker.example # two on a line
plain.example
*.wild.example

not a domain
0.0.0.0 bad/domain ok.example
||adblock.example^
UPPER.example
"""

    domains = parse_domains(text.splitlines())

    assert domains.names == {
        "ads.example",
        "tracker.example",
        "plain.example",
        "wild.example",
        "ok.example",
        "upper.example",
    }
    assert domains.invalid_lines == [11, 12, 13]
    assert domains.match("x.y.ads.example") == "ads.example"
    assert domains.match("localhost") is None
