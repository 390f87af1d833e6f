"""How long do the migrations since domains take with 1,000,000 names, and do redirects keep
answering while an old version serves?

    python -m bench migration [--names N] [--databases sqlite,postgresql,mysql]

The version before domains, from the history of the repository, serves a database of its schema
while this one migrates it, as in a rolling upgrade. Meanwhile two visitors follow names that it has
not read before. On PostgreSQL none of them may be turned away.
"""

import argparse
import asyncio
import io
import random
import subprocess
import tarfile
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from bench._common import ask, busy, table, write
from bench._links import make_links
from bench._runtime import own_database
from refract import migrations
from refract.core.db.session import Database
from refract.core.settings.model import Settings
from tools.serving import ROOT, serving

FIRST_REVISION: Final = "0039"
VISITORS: Final = 2
REST_SECONDS: Final = 0.01
AFTERWARDS_SECONDS: Final = 3.0


@dataclass
class Visits:
    """What happened to visitors while the schema changed."""

    redirected: int = 0
    failed: list[str] = field(default_factory=list)
    slowest: float = 0.0


@dataclass
class Migrated:
    """A migrated database. `steps` are seconds by revision."""

    steps: dict[str, float]
    visits: Visits

    @property
    def seconds(self) -> float:
        return sum(self.steps.values())


def extract_version_before(revision: str, place: Path) -> Path:
    """Write the package as it was before a revision; return the directory for PYTHONPATH."""
    versions = "src/refract/migrations/versions"
    added = ["log", "--format=%H", "--diff-filter=A", "--", f"{versions}/{revision}_*.py"]
    commit = _git(*added).decode().split()[-1]
    with tarfile.open(fileobj=io.BytesIO(_git("archive", f"{commit}^", "src"))) as packed:
        packed.extractall(place, filter="data")
    return place / "src"


def _git(*arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], check=True, capture_output=True
    ).stdout


def _visit(url: str, names: int, seed: int, stop: threading.Event, visits: Visits) -> None:
    chance = random.Random(seed)
    while not stop.is_set():
        path, began = f"/s{chance.randrange(names)}", time.monotonic()
        try:
            if ask(url, [path]) == 1:
                visits.redirected += 1
            else:
                visits.failed.append(path)
        except (OSError, IndexError) as exc:
            visits.failed.append(f"{path}: {exc}")
        visits.slowest = max(visits.slowest, time.monotonic() - began)
        stop.wait(REST_SECONDS)


async def _migrate(settings: Settings) -> dict[str, float]:
    """Apply one revision after another; return the seconds of each."""
    db, steps = Database(settings), {}
    try:
        revisions = migrations.list_revisions()
        for revision in revisions[revisions.index(FIRST_REVISION) :]:
            began = time.monotonic()
            await migrations.upgrade(db, revision)
            steps[revision] = time.monotonic() - began
    finally:
        await db.close()
    return steps


async def _take_back(settings: Settings, revision: str) -> None:
    db = Database(settings)
    try:
        await migrations.downgrade(db, revision)
    finally:
        await db.close()


def measure(dialect: str, names: int, old: Path) -> Migrated:
    """Fill a database, serve it with the old version, and migrate it."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir(mode=0o700)
        url = asyncio.run(own_database(dialect, data, "migration"))
        make_links(data, names, url)
        settings = Settings(data_dir=data, database_url=url)
        revisions = migrations.list_revisions()
        before = revisions[revisions.index(FIRST_REVISION) - 1]
        asyncio.run(_take_back(settings, before))
        visits, stop = Visits(), threading.Event()
        with serving(data, old, database_url=url) as served:
            visitors = [
                threading.Thread(target=_visit, args=(served.url, names, seed, stop, visits))
                for seed in range(VISITORS)
            ]
            for visitor in visitors:
                visitor.start()
            try:
                steps = asyncio.run(_migrate(settings))
                time.sleep(AFTERWARDS_SECONDS)  # the old version goes on serving
            finally:
                stop.set()
                for visitor in visitors:
                    visitor.join()
        return Migrated(steps, visits)


def main(arguments: list[str]) -> int:
    description = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="make bench migration", description=description)
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--databases", default="sqlite,postgresql,mysql")
    given = parser.parse_args(arguments)
    load, results = busy(), {}
    with tempfile.TemporaryDirectory() as place:
        old = extract_version_before(FIRST_REVISION, Path(place))
        for dialect in given.databases.split(","):
            results[dialect] = measure(dialect, given.names, old)
            print(f"{dialect}: {results[dialect]}", flush=True)
    table(
        ["", "seconds", "slowest revision", "redirected meanwhile", "not redirected", "slowest"],
        [
            [
                dialect,
                f"{found.seconds:.1f}",
                max(found.steps, key=found.steps.__getitem__),
                str(found.visits.redirected),
                str(len(found.visits.failed)),
                f"{found.visits.slowest:.2f} s",
            ]
            for dialect, found in results.items()
        ],
    )
    write(
        "migration",
        description,
        load,
        names=given.names,
        results={dialect: asdict(found) for dialect, found in results.items()},
    )
    turned_away = results["postgresql"].visits.failed if "postgresql" in results else []
    return 1 if turned_away else 0
