"""A key revoked, a session ended, a person suspended or deleted.

Refused by every process within 1 s, whichever was told.

Each process is asked again and again with the same credential, on a connection of its own, while
one of them is told to withdraw it. *Gone everywhere* is when the last answer of any process that
still let it in was received, counted from the moment the withdrawal was acknowledged. On SQLite the
processes are the workers of one server; on PostgreSQL they are servers of their own, each with its
own data directory, as on several machines.
"""

import asyncio
import json
import random
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from proofs.harness import checker, stage
from proofs.harness.ears import Ear, ears
from proofs.harness.journal import Journal
from proofs.harness.load import Bounds, Load, clicking, under
from proofs.harness.report import Report
from proofs.harness.site import Site, database, site
from proofs.harness.wire import get, request
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity import keys, sessions
from refract.identity.authentication import SESSION_COOKIE
from refract.identity.keys import DEFAULT_SCOPES
from refract.identity.models import Scope, User, UserRole
from refract.identity.users import create_local_user

BAR = 1.0
CHECK_SECONDS = 0.005
QUIET_SECONDS = 0.3
PATIENCE = 10.0
ME = "/api/v1/me"


@dataclass(frozen=True, slots=True)
class Size:
    """How often each kind of thing is withdrawn, from how many processes, and the seconds between
    two questions to each.
    """

    rounds: int
    workers: int
    nodes: int
    probe_seconds: float = 0.005
    seconds: float = 2 * 3600.0


SIZES = {
    "short": Size(rounds=1, workers=2, nodes=2, probe_seconds=0.02),
    "full": Size(rounds=100, workers=4, nodes=3),
}


class Case(NamedTuple):
    """A credential that opens `path` with `status`, and the request that withdraws it."""

    path: str
    credential: str
    status: int
    withdrawal: bytes


class Seen(NamedTuple):
    """One answer of one process: when it was asked for, when it came, and what it was."""

    sent: float
    received: float
    status: int


@dataclass(slots=True)
class Findings:
    """Seconds until each withdrawal was known everywhere, by its kind, and what should not have
    been.
    """

    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    late: Counter[str] = field(default_factory=Counter)
    strange: Counter[str] = field(default_factory=Counter)
    asked: int = 0

    @property
    def all(self) -> list[float]:
        return [seconds for several in self.took.values() for seconds in several]


# -- what is withdrawn


async def somebody(session: WriteSession, rt: Runtime) -> tuple[User, str]:
    """A person of their own, and a key by which they do things."""
    name = secrets.token_hex(8)
    user = await create_local_user(
        session, rt, f"{name}@example.com", subject=name, role=UserRole.USER
    )
    return (
        user,
        (await keys.create_key(session, rt, user, "own", [*DEFAULT_SCOPES, Scope.ACCOUNT]))[1],
    )


async def a_key(rt: Runtime, _admin: str) -> Case:
    async with rt.db.write() as session:
        user, own = await somebody(session, rt)
        row, clear = await keys.create_key(session, rt, user, "other", list(DEFAULT_SCOPES))
    return Case(
        ME, _by_key(clear), 200, request("DELETE", f"/api/v1/keys/{row.id}", b"", _by_key(own))
    )


async def a_key_to_a_secure_link(rt: Runtime, _admin: str) -> Case:
    """Redirects have a door of their own."""
    name = f"secure-{secrets.token_hex(6)}"
    await stage.plant(rt, 1, prefix=name, visibility="secure")
    owner = await stage.owner_of(rt)
    async with rt.db.write() as session:
        _, own = await keys.create_key(session, rt, owner, "own", [*DEFAULT_SCOPES, Scope.ACCOUNT])
        row, clear = await keys.create_key(session, rt, owner, "other", list(DEFAULT_SCOPES))
    return Case(
        f"/{name}-0",
        _by_key(clear),
        302,
        request("DELETE", f"/api/v1/keys/{row.id}", b"", _by_key(own)),
    )


async def a_session(rt: Runtime, _admin: str) -> Case:
    async with rt.db.write() as session:
        user, own = await somebody(session, rt)
        cookie = await sessions.create_session(session, rt, user, "proof")
        (row,) = await sessions.list_sessions(session, rt, user)
    return Case(
        ME,
        _by_cookie(cookie),
        200,
        request("DELETE", f"/api/v1/me/sessions/{row.id}", b"", _by_key(own)),
    )


async def a_person_with_a_key(rt: Runtime, admin: str) -> Case:
    async with rt.db.write() as session:
        user, own = await somebody(session, rt)
    return Case(ME, _by_key(own), 200, _suspension(user, admin))


async def a_person_in_a_browser(rt: Runtime, admin: str) -> Case:
    async with rt.db.write() as session:
        user, _ = await somebody(session, rt)
        cookie = await sessions.create_session(session, rt, user, "proof")
    return Case(ME, _by_cookie(cookie), 200, _suspension(user, admin))


async def an_account(rt: Runtime, admin: str) -> Case:
    async with rt.db.write() as session:
        user, own = await somebody(session, rt)
    return Case(
        ME,
        _by_key(own),
        200,
        request("DELETE", f"/api/v1/admin/users/{user.id}?links=delete", b"", _by_key(admin)),
    )


KINDS: dict[str, Callable[[Runtime, str], Awaitable[Case]]] = {
    "keys revoked": a_key,
    "keys to secure links revoked": a_key_to_a_secure_link,
    "sessions ended": a_session,
    "people with a key suspended": a_person_with_a_key,
    "people in a browser suspended": a_person_in_a_browser,
    "accounts deleted": an_account,
}


def _suspension(user: User, admin: str) -> bytes:
    return request(
        "PATCH",
        f"/api/v1/admin/users/{user.id}",
        json.dumps({"status": "suspended"}).encode(),
        _by_key(admin),
    )


def _by_key(clear: str) -> str:
    return f"x-api-key: {clear}"


def _by_cookie(token: str) -> str:
    return f"cookie: {SESSION_COOKIE.base_name}={token}"


# -- one withdrawal


async def withdraw(
    kind: str, case: Case, listeners: list[Ear], teller: Ear, findings: Findings, pause: float
) -> None:
    """`listeners` are one connection to each process; `teller` is another, to any of them."""
    asking, stop = get(case.path, case.credential), asyncio.Event()
    histories: list[list[Seen]] = [[] for _ in listeners]
    probes = [
        asyncio.create_task(_probe(ear, asking, seen, stop, pause))
        for ear, seen in zip(listeners, histories, strict=True)
    ]
    try:
        await _until(lambda: all(len(seen) > 2 for seen in histories))
        answer = await teller.ask(case.withdrawal)
        told = time.monotonic()
        assert 200 <= answer.status < 300, (kind, answer)
        await _until(lambda: _refused_everywhere(histories, told))
    finally:
        stop.set()
        await asyncio.gather(*probes)
    seen = [one for history in histories for one in history]
    findings.asked += len(seen)
    findings.strange.update(
        f"{kind}: {one.status}" for one in seen if one.status not in (case.status, 401)
    )
    findings.late[kind] += sum(one.sent > told and one.status == case.status for one in seen)
    findings.took[kind].append(
        max([0.0, *(one.received - told for one in seen if one.status == case.status)])
    )


async def _probe(
    ear: Ear, asking: bytes, seen: list[Seen], stop: asyncio.Event, pause: float
) -> None:
    while not stop.is_set():
        sent = time.monotonic()
        answer = await ear.ask(asking)
        seen.append(Seen(sent, time.monotonic(), answer.status))
        await asyncio.sleep(pause)


async def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < deadline:  # noqa: ASYNC110 - processes send no event
        await asyncio.sleep(CHECK_SECONDS)


def _refused_everywhere(histories: list[list[Seen]], told: float) -> bool:
    """Every process has refused, and nothing else, for a while."""
    since = time.monotonic() - QUIET_SECONDS
    recent = [[one.status for one in history if one.sent > since] for history in histories]
    return since > told and all(some and set(some) == {401} for some in recent)


# -- the whole


@asynccontextmanager
async def servers(home: Path, dialect: str, size: Size) -> AsyncIterator[list[Site]]:
    """One server with several processes on SQLite; several servers elsewhere."""
    async with AsyncExitStack() as stack:
        if dialect == "sqlite":
            made = [
                await stack.enter_async_context(
                    site(home, dialect, workers=size.workers, REFRACT_BACKGROUND="inline")
                )
            ]
        else:
            url, secret = await stack.enter_async_context(database(dialect)), secrets.token_hex(32)
            made = [
                await stack.enter_async_context(
                    site(home / f"node-{number}", dialect, url=url, REFRACT_SECRET_KEY=secret)
                )
                for number in range(size.nodes)
            ]
        for one in made:
            one.start()
            await one.until_complete()
        yield made
        for one in made:
            await one.stop()


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    chance, findings = random.Random(seed), Findings()
    async with AsyncExitStack() as stack:
        sites = await stack.enter_async_context(servers(home, dialect, size))
        rt = await stack.enter_async_context(sites[0].runtime())
        found = [
            group
            for one in sites
            for group in (await stack.enter_async_context(ears(one, 2))).values()
        ]
        listeners, tellers = [group[0] for group in found], [group[1] for group in found]
        names = [link.name for link in await stage.plant(rt, 50)]
        admin = await stage.make_key(rt)
        journal = stack.enter_context(Journal(home / "requests"))
        load = Load(
            sites[0].port,
            journal,
            clicking(names),
            Bounds(2, 20_000_000, size.seconds),
            pause=lambda: chance.uniform(0, 0.02),
        )
        async with under(load):
            wanted = [kind for kind in KINDS for _ in range(size.rounds)]
            chance.shuffle(wanted)
            for kind in wanted:
                case, teller = await KINDS[kind](rt, admin), chance.choice(tellers)
                await withdraw(kind, case, listeners, teller, findings, size.probe_seconds)
    report = Report(f"revoked: {dialect}, {len(listeners)} processes", seed)
    judge(report, findings)
    return report


def judge(report: Report, findings: Findings) -> None:
    report.say("answers looked at", findings.asked)
    for kind in KINDS:
        took = findings.took[kind]
        report.bar(
            f"{len(took)} {kind}",
            checker.spread(took),
            f"≤ {BAR:g} s",
            held=max(took) <= BAR,
            timed=True,
        )
    report.none("asked after the word was given, and still let in", findings.late.total())
    report.none("answers that are neither", findings.strange.total())
    report.notes += [
        f"{what}, {number} times"
        for what, number in (findings.late + findings.strange).most_common(5)
    ]


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("revoked", arguments, __doc__, "sqlite,postgresql", prove)
