"""An upgrade to a version with one more migration, and back, under load, 0 failed requests.

"Version 2" is a copy of the package with one additive migration, whose code asks for the new column
in every question about a link. One node is reloaded, with one process and with two; two nodes
behind nginx are upgraded one after the other while the old one restarts on the new schema, and then
taken back: old code on the new schema, and the schema after it.
"""

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from signal import SIGHUP

from proofs.harness import stage
from proofs.harness.journal import Journal, Kind, Outcome
from proofs.harness.load import Ask, Bounds, Load, clicking, under, writing
from proofs.harness.nginx import nginx
from proofs.harness.report import Report
from proofs.harness.site import NotServing, Site, database, site
from proofs.harness.versions import Installed, Version, next_version, this_version
from proofs.harness.wire import Wire, get
from refract import migrations
from refract.core.db.session import Database

PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Size:
    """How often it goes there and back, and how many ask meanwhile."""

    rounds: int
    connections: int
    links: int = 50


SIZES = {"short": Size(rounds=1, connections=2), "full": Size(rounds=5, connections=8)}


def loads(
    port: int, journal: Journal, names: list[str], key: str, size: Size, chance: random.Random
) -> list[Load]:
    """Visitors, readers of the API and writers, all without haste."""
    bounds = Bounds(size.connections, 5_000_000, 3600.0)
    listing = get("/api/v1/links?limit=5", f"x-api-key: {key}")
    write = writing(
        key,
        "/api/v1/links",
        lambda number: {"destination": f"https://example.com/written/{number}"},
    )
    return [
        Load(port, journal, clicking(names), bounds, pause=lambda: chance.uniform(0, 0.05)),
        Load(
            port,
            journal,
            lambda _: Ask(Kind.OTHER, listing),
            bounds._replace(connections=1),
            pause=lambda: chance.uniform(0, 0.2),
        ),
        Load(
            port,
            journal,
            write,
            bounds._replace(connections=1),
            pause=lambda: chance.uniform(0, 0.2),
        ),
    ]


async def version_at(port: int) -> str:
    """Return the version that answers there, or the empty text."""
    try:
        wire = await Wire.open(port)
        answer = await wire.ask(get("/ready"), 10.0)
        wire.close()
        return str(json.loads(answer.body).get("version", "")) if answer.status == 200 else ""
    except (OSError, ValueError):
        return ""


async def until_version(made: Site, number: str) -> None:
    """Wait until every answer comes from this version."""
    deadline, in_a_row = time.monotonic() + PATIENCE, 0
    while in_a_row < 2 * made.workers + 2:
        if time.monotonic() > deadline or not made.alive:
            raise NotServing(f"not at {number} after {PATIENCE:g} s:\n{made.log[-3000:]}")
        in_a_row = in_a_row + 1 if await version_at(made.port) == number else 0
        await asyncio.sleep(0.05)


async def schema_of(made: Site) -> str:
    db = Database(made.settings())
    try:
        return await migrations.get_current_revision(db) or "none"
    finally:
        await db.close()


async def restarted(made: Site, place: Installed, version: Version) -> None:
    """Stop the node, install, start."""
    await made.stop()
    place.install(version)
    made.start()
    await made.until_serving()
    await until_version(made, version.number)


async def by_reload(home: Path, dialect: str, size: Size, seed: int, workers: int) -> Report:
    """One node: a new version is installed over the old one, and the parent gets SIGHUP."""
    old, new = this_version(), next_version(home)
    place = Installed(home / "installed", old)
    with Journal(home / "requests") as journal:
        async with site(home, dialect, workers=workers, PYTHONPATH=str(place.path)) as made:
            names, key = await planted(made, size)
            made.start()
            await made.until_complete()
            pid = made.pid
            async with under(*loads(made.port, journal, names, key, size, random.Random(seed))):
                place.install(new)
                os.kill(made.pid, SIGHUP)
                await until_version(made, new.number)
                schema = await schema_of(made)
            kept = made.alive and made.pid == pid
            await made.stop()
        report = judge(
            f"upgrade: reload of {workers} process{'es'[: 2 * (workers > 1)]}, {dialect}",
            seed,
            journal,
        )
        report.bar("schema after the reload", schema, new.revision, held=schema == new.revision)
        report.bar(
            "process that was asked", "still there" if kept else "gone", "still there", held=kept
        )
        return report


async def planted(made: Site, size: Size) -> tuple[list[str], str]:
    async with made.runtime() as rt:
        return [link.name for link in await stage.plant(rt, size.links)], await stage.make_key(rt)


async def rolling(home: Path, dialect: str, size: Size, seed: int) -> Report:
    """Two nodes on one database: each upgraded in turn, the old one restarted between, and both
    taken back.
    """
    old, new = this_version(), next_version(home)
    places = [Installed(home / f"installed-{number}", old) for number in (1, 2)]
    first_path, second_path = (str(place.path) for place in places)
    with Journal(home / "requests") as journal:
        async with (
            database(dialect) as url,
            site(home, dialect, url=url, PYTHONPATH=first_path) as first,
            site(home, dialect, url=url, PYTHONPATH=second_path) as second,
        ):
            names, key = await planted(first, size)
            for made in (first, second):
                made.start()
                await made.until_serving()
            with nginx(home, [first.port, second.port]) as port:
                async with under(*loads(port, journal, names, key, size, random.Random(seed))):
                    upgraded = back = told = ""
                    for _ in range(size.rounds):
                        await restarted(first, places[0], new)
                        upgraded = await schema_of(first)
                        await restarted(second, places[1], old)  # it reboots on the new schema
                        await restarted(second, places[1], new)
                        await restarted(first, places[0], old)
                        await restarted(second, places[1], old)
                        told = await taken_back(first, new, old.revision)
                        back = await schema_of(first)
            await first.stop()
            await second.stop()
        report = judge(f"upgrade: two nodes behind nginx, there and back, {dialect}", seed, journal)
        report.bar(
            "schema after the first node", upgraded, new.revision, held=upgraded == new.revision
        )
        report.bar("schema taken back", back, old.revision, held=back == old.revision)
        report.bar("what that loses is named", told, "yes", held=told == "yes")
        return report


async def taken_back(made: Site, version: Version, revision: str) -> str:
    """`refract migrate --to`, by the version that knows the way."""
    done = await asyncio.to_thread(
        made.refract, "migrate", "--to", revision, "--yes", PYTHONPATH=str(version.path)
    )
    return (
        "yes"
        if done.returncode == 0 and "column links.note_of_tomorrow" in done.stdout
        else done.stdout + done.stderr
    )


def judge(title: str, seed: int, journal: Journal) -> Report:
    report = Report(title, seed)
    good: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for record in journal.read():
        if record.outcome == Outcome.ANSWERED and record.status < 400:
            good[Kind(record.kind).name] += 1
        else:
            failed[
                f"{Kind(record.kind).name} {Outcome(record.outcome).name}"
                f" {record.status or ''}".strip()
            ] += 1
    report.bar("redirects received", good["CLICK"], "> 0", held=good["CLICK"] > 0)
    report.bar("links listed", good["OTHER"], "> 0", held=good["OTHER"] > 0)
    report.bar("links written", good["WRITE"], "> 0", held=good["WRITE"] > 0)
    report.none("failed requests", failed.total())
    if failed:
        report.note(f"failed: {dict(failed)}")
    return report


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    for workers in (1, 2):
        place = home / f"reload-{workers}"
        place.mkdir()
        yield await by_reload(place, dialect, SIZES[size], seed, workers)
    place = home / "rolling"
    place.mkdir()
    yield await rolling(place, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("upgrade", arguments, __doc__, "sqlite,postgresql", prove)
