"""Every operation of the API, in thousands of odd ways, as four identities: no answer ≥ 500, none that the document does not describe.

schemathesis reads our own OpenAPI document and asks a real server on this machine: the examples, every boundary of every parameter,
random requests good and bad, and chains of calls where one answer feeds the next. `--examples` is how many random requests an operation
gets, `--seed` repeats a run.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from proofs.harness.report import Report
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.identity.models import Scope
from tests import make
from tools.serving import environment, serving

PATIENCE = 120.0
STRANGER, USER, READER, ADMIN = IDENTITIES = ("stranger", "user", "reader", "admin")
ALL_PHASES = ("examples", "coverage", "fuzzing", "stateful")
STREAMS = ("/live",)  # they have no end to wait for; tests/clicks/test_live.py follows them
LEFT_OUT = ("positive_data_acceptance",)  # a cursor, a URL, a time zone, a name obey rules that a JSON schema cannot say
_LIMITS = ("key_requests_per_hour", "creates_per_hour", "misses_per_minute", "anonymous_lists_per_hour", "anonymous_entries_per_hour")
UNLIMITED = dict.fromkeys(_LIMITS, "unlimited")  # a 429 would hide what lies behind it


@dataclass(frozen=True)
class Finding:
    """What one identity's run came to."""

    identity: str
    held: bool
    operations: int
    reached: int
    cases: int
    told: str


def explore(
    identities: tuple[str, ...] = IDENTITIES, *, examples: int, seed: int, phases: tuple[str, ...] = ALL_PHASES, database: str | None = None
) -> list[Finding]:
    """Serve on an empty database (a file of its own unless a URL is given) and let each identity try everything."""
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        settings = {**UNLIMITED, **({"database_url": database} if database else {})}
        with serving(data_dir, **settings) as served:
            keys = asyncio.run(_keys(Settings(data_dir=data_dir, **settings)))  # type: ignore[arg-type]
            with urlopen(f"{served.url}/api/openapi.json", timeout=PATIENCE) as document:  # noqa: S310 - our own server
                document.read()  # built at the first request, for which schemathesis would wait 10 s alone
            return [_run(served.url, who, keys[who], examples, seed, phases) for who in identities]


async def _keys(settings: Settings) -> dict[str, str | None]:
    async with open_runtime(settings) as rt:
        return {STRANGER: None, **await _people(rt)}


async def _people(rt: Runtime) -> dict[str, str]:
    async with rt.db.write() as session:
        ada, root = await make.person(session, rt), await make.admin(session, rt)
        return {
            USER: await make.key(session, rt, ada),
            READER: await make.key(session, rt, ada, Scope.READ),
            ADMIN: await make.key(session, rt, root, *make.ALL),
        }


def _run(url: str, identity: str, key: str | None, examples: int, seed: int, phases: tuple[str, ...]) -> Finding:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/api/openapi.json"]
        words += ["--checks", "all", "--exclude-checks", ",".join(LEFT_OUT), "--phases", ",".join(phases), "--continue-on-failure"]
        words += ["--max-examples", str(examples), "--seed", str(seed), "--report-json-path", str(report), "--no-color"]
        words += ["--exclude-path-regex", f"({'|'.join(STREAMS)})$"]
        words += ["--header", f"X-API-Key: {key}"] if key else []
        done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
        found: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {}
    operations = found.get("operations")
    if operations is None:  # it never got as far as the first request
        return Finding(identity, held=False, operations=0, reached=0, cases=0, told=done.stdout + done.stderr)
    held = done.returncode == 0 and 0 < operations["total"] - len(STREAMS) == operations["tested"]
    return Finding(
        identity,
        held,
        operations["total"] - len(STREAMS),
        operations["tested"],
        found["test_cases"]["generated"],
        done.stdout + done.stderr,
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make proof openapi", description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=300, help="random requests per operation and identity")
    parser.add_argument("--seed", type=int, help="Left out: a random one, printed.")
    parser.add_argument("--database", default=None, help="the URL of an empty database; left out: SQLite")
    parser.add_argument("--save", action="store_true", help="Write the figures to proofs/results.")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    report = Report("openapi: every operation, as four identities", seed)
    report.say("random requests per operation and identity", given.examples)
    for finding in explore(examples=given.examples, seed=seed, database=given.database):
        report.say(f"{finding.identity}: requests", finding.cases)
        reached = f"{finding.reached} of {finding.operations}"
        report.bar(f"{finding.identity}: operations reached", reached, "all", held=0 < finding.operations == finding.reached)
        told = "none" if finding.held else "some"
        report.bar(f"{finding.identity}: answers ≥ 500 or not as described", told, "none", held=finding.held)
        if not finding.held:
            print(finding.told)
    if given.save:
        report.save("openapi")
    return 0 if report.show() else 1
