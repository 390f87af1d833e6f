"""1,000 changes under load: no process gives the old answer longer than 1 s (p99), 5 s with the bus
cut, 0 s past an expiry.

Every changed link has a twin of the same name on another domain, whose answer never changes.
Each process is asked again and again on connections of its own. A change is *gone everywhere* when
the last old answer of any process was received, counted from the moment the change was
acknowledged. With the bus cut, processes hear of nothing and must ask: on PostgreSQL the
connections that listen and follow fall silent without a word, or are terminated again and again; on
SQLite, where the bus is the database itself, reading the feed of changes fails.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import text

from proofs.harness import checker, expiry, stage
from proofs.harness.changes import OTHER_DOMAIN, Changes, Findings, Subject
from proofs.harness.ears import Ear, ears, metric
from proofs.harness.journal import Journal, Kind, Outcome
from proofs.harness.load import Bounds, Load, clicking, under
from proofs.harness.proxy import Proxy, proxied
from proofs.harness.report import Report
from proofs.harness.site import ROOT, Site, database, site
from proofs.harness.wire import get
from refract.core.runtime import Runtime

EVERYWHERE, CUT_OFF = 1.0, 5.0
AT_ONCE = 4
INJECT = Path(__file__).parent / "harness" / "inject"
TERMINATE = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
AND (query LIKE 'LISTEN%' OR query LIKE 'SELECT%FROM link_feed%')"""


@dataclass(frozen=True, slots=True)
class Size:
    """How many changes with the bus whole and how many while it is cut, how many links that
    expire; how often processes are asked, and how long visitors rest at most.
    """

    changes: int
    cut: int
    expiries: int
    workers: int = 4
    probe_seconds: float = 0.005
    click_rest: float = 0.02
    seconds: float = 2 * 3600.0


SIZES = {
    "short": Size(changes=12, cut=4, expiries=6, workers=2, probe_seconds=0.02, click_rest=0.1),
    "full": Size(changes=1000, cut=200, expiries=200),
}


class Bus:
    """What connects the processes, and how it is cut on this database.

    `away` notes when the database could not be asked at all.
    """

    def __init__(self, switches: Path, proxy: Proxy | None, rt: Runtime | None = None) -> None:
        self._switches = switches
        self._proxy = proxy
        self.rt = rt
        self.away: list[tuple[float, float]] = []

    @asynccontextmanager
    async def silent(self, what: str = "bus") -> AsyncIterator[None]:
        """`bus`, or `all`: then the database cannot be asked either."""
        if self._proxy is not None:
            self._proxy.cut = what
            try:
                yield
            finally:
                self._proxy.heal()
            return
        switch = self._switches / ("feed" if what == "bus" else "store")
        switch.touch()
        try:
            yield
        finally:
            switch.unlink()

    @asynccontextmanager
    async def terminated(self) -> AsyncIterator[None]:
        """Everybody who listens or follows is thrown out, ten times a second."""

        async def throw_out() -> None:
            while self.rt is not None:
                async with self.rt.db.write() as session:
                    await session.execute(text(TERMINATE))
                await asyncio.sleep(0.1)

        task = asyncio.create_task(throw_out())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def staged(home: Path, dialect: str, workers: int) -> AsyncIterator[tuple[Site, Bus]]:
    """A site whose bus can be cut."""
    switches = home / "switches"
    switches.mkdir()
    async with database(dialect) as url:
        if url is None:
            path = f"{INJECT}:{ROOT / 'src'}"
            async with site(
                home, dialect, workers=workers, PYTHONPATH=path, PROOF_FAULTS=str(switches)
            ) as made:
                yield made, Bus(switches, None)
        else:
            async with (
                proxied(url) as (proxy, through),
                site(home, dialect, workers=workers, url=through) as made,
            ):
                yield made, Bus(switches, proxy)


async def heard_again(listeners: list[Ear]) -> None:
    """Every process follows the changes once more."""
    for ear in listeners:
        # Another process sends us no event.
        while await metric(ear, "refract_changes_unheard"):  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.1)


async def cut_off(
    changes: Changes, bus: Bus, groups: list[list[Ear]], size: Size, dialect: str
) -> Findings:
    """Cut, change at once, see how long it lasts, heal; and again."""
    findings = Findings()
    for number in range(0, size.cut, len(groups)):
        terminate = dialect == "postgresql" and number // len(groups) % 2
        async with bus.terminated() if terminate else bus.silent():
            await changes.many(groups, len(groups), findings)
        await heard_again(groups[0])
    return findings


async def expiring(rt: Runtime, group: list[Ear], number: int) -> expiry.Late:
    """Let links expire one after another, by turns cached everywhere or never requested."""
    found = expiry.Late()
    planted = await _ending(rt, number, "soon")
    await asyncio.gather(
        *(
            expiry.watch(group, link, moment, found, warm=index % 2 == 0)
            for index, (link, moment) in enumerate(planted)
        )
    )
    return found


async def expiring_away(
    rt: Runtime, bus: Bus, group: list[Ear], number: int, names: list[str]
) -> expiry.Late:
    """The same while nobody can be asked.

    Every process has everything at hand: these links, and those of the load beside.
    """
    found = expiry.Late()
    planted = await _ending(rt, number, "away")
    for path in [get(f"/{name}") for name in (*names, *(link.name for link, _ in planted))]:
        await asyncio.gather(*(ear.ask(path) for ear in group))
    began = time.monotonic()
    async with bus.silent("all"):
        await asyncio.gather(
            *(expiry.watch(group, link, moment, found, warm=True) for link, moment in planted)
        )
    bus.away.append((began, time.monotonic() + 3.0))
    return found


async def _ending(rt: Runtime, number: int, prefix: str) -> list[tuple[stage.Planted, datetime]]:
    """Planted one by one: a busy machine takes its time for that, and the first must not be over
    before the last is there.
    """
    first = datetime.now(UTC) + timedelta(seconds=5 + number / 20)
    moments = [first + timedelta(milliseconds=100 * index) for index in range(number)]
    return [
        ((await stage.plant(rt, 1, prefix=f"{prefix}-{index}", expires_at=moment))[0], moment)
        for index, moment in enumerate(moments)
    ]


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    report = Report(f"forget: {dialect}, {size.workers} processes", seed)
    chance = random.Random(seed)
    with Journal(home / "requests") as journal:
        async with staged(home, dialect, size.workers) as (made, bus), made.runtime() as rt:
            bus.rt = rt
            names = [link.name for link in await stage.plant(rt, 200)]
            key, links = await stage.make_key(rt), await subjects(rt)
            changes = Changes(key, links, chance, size.probe_seconds)
            made.start()
            await made.until_complete()
            load = Load(
                made.port,
                journal,
                clicking(names),
                Bounds(8, 20_000_000, size.seconds),
                pause=lambda: chance.uniform(0, size.click_rest),
            )
            async with ears(made, AT_ONCE) as found, under(load):
                groups, whole = (
                    [list(group) for group in zip(*found.values(), strict=True)],
                    Findings(),
                )
                await changes.many(groups, size.changes, whole)
                cut = await cut_off(changes, bus, groups, size, dialect)
                late = await expiring(rt, groups[0], size.expiries)
                late_away = await expiring_away(
                    rt, bus, groups[1], max(4, size.expiries // 10), names
                )
            await made.stop()
        judge(report, whole, cut, (late, late_away))
        judge_load(report, journal, bus.away)
    return report


async def subjects(rt: Runtime) -> list[Subject]:
    """Links to be changed, each leading to a host of its own, so that it can be blocked alone.

    Each has a twin with the same name on another domain.
    """
    await stage.add_domain(rt, OTHER_DOMAIN)
    made = []
    for number in range(4 * AT_ONCE):
        prefix, host = f"s{number}", f"host-{number}.example"
        (link,) = await stage.plant(rt, 1, prefix=prefix, host=host)
        (twin,) = await stage.plant(rt, 1, prefix=prefix, domain=OTHER_DOMAIN)
        made.append(Subject(link, host, twin))
    return made


def judge(
    report: Report, whole: Findings, cut: Findings, late: tuple[expiry.Late, expiry.Late]
) -> None:
    kinds = ", ".join(f"{len(took)} {kind}" for kind, took in sorted(whole.took.items()))
    report.say("changes", f"{len(whole.all):,} ({kinds})")
    report.say("answers looked at", whole.asked + cut.asked)
    p99 = checker.percentile(whole.all, 0.99)
    report.bar(
        "gone everywhere after",
        checker.spread(whole.all),
        f"p99 ≤ {EVERYWHERE:g} s",
        held=p99 <= EVERYWHERE,
        timed=True,
    )
    report.say("changes with the bus cut", len(cut.all))
    worst = max(cut.all, default=0.0)
    report.bar(
        "gone everywhere after",
        checker.spread(cut.all),
        f"≤ {CUT_OFF:g} s",
        held=worst <= CUT_OFF,
        timed=True,
    )
    report.none("answers neither old nor new", len(whole.strange) + len(cut.strange))
    report.say("same names on another domain, asked", whole.twins_asked + cut.twins_asked)
    report.none("of them with another answer", len(whole.twins_changed) + len(cut.twins_changed))
    report.notes += sorted(set(whole.twins_changed + cut.twins_changed))[:5]
    report.notes += sorted(set(whole.strange + cut.strange))[:5]
    for what, found in zip(("", ", database away"), late, strict=True):
        report.bar(
            f"redirects just before an expiry{what}",
            found.before,
            "some",
            held=found.before > 0,
            timed=True,
        )
        report.say(f"answers just after it{what}", found.after)
        report.none(f"redirects after it{what}", len(found.late))
        if found.late:
            report.note(f"late by up to {max(found.late) * 1000:.1f} ms{what}")


def judge_load(report: Report, journal: Journal, away: list[tuple[float, float]]) -> None:
    """What happened to everybody else.

    They ask for links that every process has at hand, whoever may be away.
    """
    clicks = [record for record in journal.read() if record.kind == Kind.CLICK]
    others = [record for record in clicks if not record.acknowledged]
    report.say("redirects under load beside", len(clicks) - len(others))
    report.say(
        "of them while the database was away",
        sum(
            record.acknowledged and any(a <= record.began <= b for a, b in away)
            for record in clicks
        ),
    )
    report.none("of the load beside, not redirected", len(others))
    odd = {Outcome(record.outcome).name + f" {record.status}" for record in others}
    if odd:
        report.note(f"not redirected: {sorted(odd)}")


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("forget", arguments, __doc__, "sqlite,postgresql", prove)
