"""Hostile strangers for five minutes.

Redirects of others go on, memory stays bounded, attacks are refused.

Every attack of the threat model at once (`proofs/harness/attacks.py`) beside visitors who follow
links. The same visitors are measured before, without attacks. The short size runs on Python's own
event loop with a probe around each callback and asserts CPU per callback, memory and refusals; how
long visitors wait is for the full size.
"""

import asyncio
import contextlib
import json
import random
import sys
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofs.harness import checker, proc, stage
from proofs.harness.journal import Journal, Outcome
from proofs.harness.load import Bounds, Load, clicking, under
from proofs.harness.report import Report
from proofs.harness.site import ROOT, Site, site
from proofs.harness.slowness import Slowness

INJECT = ROOT / "proofs/harness/inject"
MAX_P99 = 0.05
MAX_WAIT = 0.25
MAX_GROWTH = 64 * 1024 * 1024
MAX_CALLBACK = 0.02
MAX_ANSWER = 1024 * 1024
SAMPLE_SECONDS = 0.5
MAX_WARM_UPS = 10
WARM_GROWTH = 1024 * 1024
"""A process that grew by less in a whole round has loaded everything."""
LINKS = 50
GARBAGE = "garbage collection"
REFUSED = {
    "huge body": (0, 401, 413, 429),
    "unknown keys": (400, 401, 422, 429),
    "deep body": (400, 401, 413, 429),
    "foreign host": (421,),
    "slow head": (0, 400, 408),
    "cut body": (0,),
}
"""Attacks that must never get any other answer; 0 is a closed connection, or none in time."""


@dataclass(frozen=True, slots=True)
class Size:
    workers: tuple[int, ...]
    quiet_seconds: float
    seconds: float
    probed: bool


SIZES = {
    "short": Size((1,), quiet_seconds=2.0, seconds=10.0, probed=True),
    "full": Size((1, 2), quiet_seconds=30.0, seconds=300.0, probed=False),
}


@dataclass
class Findings:
    """What one run saw."""

    quiet: list[float] = field(default_factory=list)
    attacked: list[float] = field(default_factory=list)
    unanswered: int = 0
    memory: list[int] = field(default_factory=list)
    helpers: int = 0
    attacks: dict[str, Any] = field(default_factory=dict)
    callbacks: list[tuple[float, str]] = field(default_factory=list)
    slowness: Slowness = field(default_factory=Slowness)


def environment(home: Path, *, probed: bool) -> dict[str, str]:
    """Limits as they are by default; loopback counts as the web and as a trusted proxy."""
    given = {
        "REFRACT_TRUSTED_PROXIES": "127.0.0.1/32",
        "REFRACT_FETCH_ALLOW": "127.0.0.2/32",
        "REFRACT_ANONYMOUS_LISTS": "publish",
        "REFRACT_MISSES_PER_MINUTE": "120",
    }
    if probed:
        given |= {
            "PROOF_CALLBACKS": str(home / "callbacks"),
            "PYTHONPATH": f"{INJECT}:{ROOT / 'src'}",
        }
    return given


async def measure(home: Path, dialect: str, workers: int, size: Size, seed: int) -> Findings:
    """Run one site through a quiet spell and through all attacks."""
    found = Findings()
    async with site(
        home, dialect, workers=workers, **environment(home, probed=size.probed)
    ) as made:
        async with made.runtime() as rt:
            names = [link.name for link in await stage.plant(rt, LINKS)]
            key = await stage.make_key(rt)
        made.start()
        await made.until_complete()
        quiet = await visit(home / "quiet", made, names, seed, asyncio.sleep(size.quiet_seconds))
        await warm_up(made, seed, key, names[0])
        callbacks_before = len(read_callbacks(home))
        sampling = asyncio.gather(sample_memory(made, found), found.slowness.sample())
        try:
            attacked = await visit(
                home / "attacked",
                made,
                names,
                seed,
                attack(made, size.seconds, seed, key, names[0]),
            )
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
        found.quiet, found.attacked = quiet.waits, attacked.waits
        found.attacks, found.unanswered = attacked.result, attacked.unanswered
        found.callbacks = read_callbacks(home)[callbacks_before:]
        await made.stop()
    return found


async def warm_up(made: Site, seed: int, key: str, link: str) -> None:
    """Try every attack until each process has loaded what it loads on first use."""
    before: dict[int, int] = {}
    for _ in range(MAX_WARM_UPS):
        await attack(made, 0, seed, key, link)
        memory = {pid: proc.resident_bytes(pid) for pid in made.servers()}
        grown = [size - before.get(pid, 0) for pid, size in memory.items()]
        if max(grown) <= WARM_GROWTH:
            return
        before = memory


@dataclass(frozen=True, slots=True)
class Visits:
    """Waits of visitors for their redirects, failed ones, and the result of what ran meanwhile."""

    waits: list[float]
    unanswered: int
    result: Any


async def visit(
    path: Path, made: Site, names: list[str], seed: int, meanwhile: Awaitable[Any]
) -> Visits:
    """Let visitors follow links, about 200 a second, until something else is done."""
    chance = random.Random(seed)
    bounds = Bounds(4, 1_000_000, 3_600.0)
    with Journal(path) as journal:
        async with under(
            Load(
                made.port,
                journal,
                clicking(names),
                bounds,
                pause=lambda: chance.uniform(0.01, 0.03),
            )
        ):
            result = await meanwhile
        records = list(journal.read())
    good = [
        record for record in records if record.outcome == Outcome.ANSWERED and record.status == 302
    ]
    return Visits(
        [record.ended - record.began for record in good], len(records) - len(good), result
    )


async def attack(made: Site, seconds: float, seed: int, key: str, link: str) -> dict[str, Any]:
    """Run all attacks from a process of low priority: in life they come from other machines."""
    words = [str(made.port), str(seconds), str(seed), key, link]
    command = ["nice", "-n", "10", sys.executable, "-m", "proofs.harness.attacks", *words]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, "the attacks did not run"
    found: dict[str, Any] = json.loads(printed)
    return found


async def sample_memory(made: Site, found: Findings) -> None:
    """Sample the resident memory of the server processes, and the peak of their helpers."""
    while True:
        servers = made.servers()
        found.memory.append(sum(proc.resident_bytes(pid) for pid in servers))
        helpers = {below for pid in servers for below in proc.descendants(pid)}
        found.helpers = max(found.helpers, sum(proc.resident_bytes(pid) for pid in helpers))
        await asyncio.sleep(SAMPLE_SECONDS)


def read_callbacks(home: Path) -> list[tuple[float, str]]:
    """Return the long callbacks that the probe has written so far: CPU seconds and what ran."""
    with contextlib.suppress(FileNotFoundError):
        lines = (home / "callbacks").read_text().splitlines()
        return [
            (float(seconds), what) for seconds, _, what in (line.partition(" ") for line in lines)
        ]
    return []


def judge(report: Report, found: Findings, size: Size) -> None:
    report.say("redirects without attacks", checker.spread(found.quiet))
    report.say("redirects beside attacks", checker.spread(found.attacked))
    p99, longest = checker.percentile(found.attacked, 0.99), max(found.attacked, default=0.0)
    report.bar(
        "p99", f"{p99 * 1000:.1f} ms", f"≤ {MAX_P99 * 1000:g} ms", held=p99 <= MAX_P99, timed=True
    )
    report.bar(
        "longest wait",
        f"{longest * 1000:.1f} ms",
        f"≤ {MAX_WAIT * 1000:g} ms",
        held=longest <= MAX_WAIT,
        timed=True,
    )
    report.none("redirects not answered", found.unanswered)
    judge_memory(report, found)
    if size.probed:
        judge_callbacks(report, found)
    judge_answers(report, found)


def judge_callbacks(report: Report, found: Findings) -> None:
    """Compare the longest callback with its bar, on a machine as slow as this one was meanwhile."""
    collections = [seconds for seconds, what in found.callbacks if what == GARBAGE]
    report.say("longest garbage collection, CPU", f"{max(collections, default=0.0) * 1000:.1f} ms")
    factor = found.slowness.factor
    report.say("the machine", f"{factor:.1f} × slower than the one of the bars")
    callbacks = [(seconds / factor, what) for seconds, what in found.callbacks if what != GARBAGE]
    worst = max((seconds for seconds, _ in callbacks), default=0.0)
    report.bar(
        "longest callback, CPU of that machine",
        f"{worst * 1000:.1f} ms",
        f"≤ {MAX_CALLBACK * 1000:g} ms",
        held=worst <= MAX_CALLBACK,
    )
    for seconds, what in sorted(callbacks, reverse=True)[:8]:
        if seconds > MAX_CALLBACK:
            report.note(f"{seconds * 1000:.1f} ms: {what}")


def judge_memory(report: Report, found: Findings) -> None:
    growth = max(found.memory, default=0) - (found.memory[0] if found.memory else 0)
    half = found.memory[len(found.memory) // 2 :]
    minutes = max(1, len(half) - 1) * SAMPLE_SECONDS / 60
    slope = (half[-1] - half[0]) / minutes if half else 0
    report.say("memory at the beginning", f"{_mb(found.memory[0] if found.memory else 0)} MB")
    report.bar(
        "memory growth", f"{_mb(growth)} MB", f"≤ {_mb(MAX_GROWTH)} MB", held=growth <= MAX_GROWTH
    )
    report.say("memory slope, second half", f"{_mb(int(slope))} MB a minute")
    report.say("extraction processes at most", f"{_mb(found.helpers)} MB")


def judge_answers(report: Report, found: Findings) -> None:
    """Count what each attack was answered, and what it must never be answered."""
    for name, seen in found.attacks.items():
        answers = {int(status): number for status, number in seen["answers"].items()}
        report.say(
            name,
            ", ".join(
                f"{status or 'closed'} × {number:,}" for status, number in sorted(answers.items())
            ),
        )
        wrong = sum(number for status, number in answers.items() if status >= 500 and status != 503)
        allowed = REFUSED.get(name)
        if allowed is not None:
            wrong = sum(number for status, number in answers.items() if status not in allowed)
        report.none(f"{name}: wrong answers", wrong)
    largest = max((seen["largest"] for seen in found.attacks.values()), default=0)
    report.bar(
        "largest answer", f"{largest:,} bytes", f"≤ {MAX_ANSWER:,}", held=largest <= MAX_ANSWER
    )


def _mb(size: int) -> str:
    return f"{size / 1024 / 1024:.1f}"


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    chosen = SIZES[size]
    for workers in chosen.workers:
        place = home / f"workers-{workers}"
        place.mkdir()
        report = Report(
            f"strangers: {chosen.seconds:g} s of attacks, {dialect}, {workers}"
            f" process{'es' * (workers > 1)}",
            seed,
        )
        judge(report, await measure(place, dialect, workers, chosen, seed), chosen)
        yield report


def main(arguments: list[str]) -> int:
    return stage.main("strangers", arguments, __doc__, "sqlite", prove)
