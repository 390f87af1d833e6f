"""Every operation of the API, in thousands of odd ways, as four identities.

No answer ≥ 500, none that the document does not describe.

schemathesis reads our own OpenAPI document and asks a real server on this machine: the examples,
every boundary of every parameter, random requests good and bad, and chains of calls where one
answer feeds the next. `--examples` is how many random requests an operation gets, `--seed` repeats
a run.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast
from urllib.request import urlopen

import schemathesis
import schemathesis.cli
from click.testing import CliRunner
from schemathesis.hooks import GLOBAL_HOOK_DISPATCHER
from schemathesis.python import asgi
from starlette.types import Send

from proofs.harness.report import Report
from refract import migrations
from refract.app import WebNode
from refract.core.db.session import Database
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.identity.models import Scope
from tests import make
from tools.serving import environment, serving

PATIENCE = 120.0
STRANGER, USER, READER, ADMIN = IDENTITIES = ("stranger", "user", "reader", "admin")
ALL_PHASES = ("examples", "coverage", "fuzzing", "stateful")
STREAMS = ("/live",)  # they have no end to wait for; tests/clicks/test_live.py follows them
LEFT_OUT = (
    "positive_data_acceptance",
)  # a cursor, a URL, a time zone, a name obey rules that a JSON schema cannot say
_LIMITS = (
    "key_requests_per_hour",
    "creates_per_hour",
    "misses_per_minute",
    "anonymous_lists_per_hour",
    "anonymous_entries_per_hour",
)
UNLIMITED = dict.fromkeys(_LIMITS, "unlimited")  # a 429 would hide what lies behind it


@dataclass(frozen=True)
class Exploration:
    """How much is tried: random requests per operation, phases, and paths (a pattern, or all)."""

    examples: int
    seed: int
    phases: tuple[str, ...] = ALL_PHASES
    paths: str = ""


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
    exploration: Exploration,
    identities: tuple[str, ...] = IDENTITIES,
    *,
    database: str | None = None,
) -> list[Finding]:
    """Serve on an empty database (a file of its own unless a URL is given) and let each identity
    try everything.
    """
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        settings = {**UNLIMITED, **({"database_url": database} if database else {})}
        with serving(data_dir, **settings) as served:
            known = Settings(data_dir=data_dir, **settings)  # type: ignore[arg-type]
            keys = asyncio.run(_keys(known))
            document = f"{served.url}/api/openapi.json"
            with urlopen(document, timeout=PATIENCE) as answer:  # noqa: S310 - our own server
                answer.read()  # schemathesis waits for 10 s, and the first request builds it
            return [
                _run(_in_another_process, document, who, keys[who], exploration)
                for who in identities
            ]


def explore_in_process(identity: str, exploration: Exploration) -> Finding:
    """Let one identity try an application in this process, without a socket and a server."""
    with tempfile.TemporaryDirectory() as folder, InProcess(Path(folder)) as application:
        return _run(
            _in_this_process,
            str(application.document),
            identity,
            application.keys[identity],
            exploration,
        )


class InProcess:
    """Refract as an ASGI application that is opened and closed with its lifespan, on the event loop
    of schemathesis.
    """

    def __init__(self, folder: Path) -> None:
        self.document = folder / "openapi.json"
        self.keys: dict[str, str | None] = {}
        self._settings = Settings(
            data_dir=folder / "data",
            base_url=f"http://{asgi.HOST}",
            **UNLIMITED,  # type: ignore[arg-type]
        )
        self._app: WebNode | None = None

        def answer_here(_context: object, schema: Any) -> None:
            schema.app = self

        self._hook = answer_here

    def __enter__(self) -> Self:
        asyncio.run(_migrate(self._settings))
        schemathesis.hook("after_load_schema")(self._hook)
        with asgi.get_client(self) as client:
            self.document.write_bytes(client.get("/api/openapi.json").content)
        return self

    def __exit__(self, *_: object) -> None:
        GLOBAL_HOOK_DISPATCHER.unregister(self._hook)
        asgi.shutdown_lifespans()

    async def __call__(self, scope: dict[str, Any], receive: asgi.Receive, send: asgi.Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._app is not None:
            await self._app({**scope, "client": ("127.0.0.1", 50_000)}, receive, cast("Send", send))

    async def _live(self, receive: asgi.Receive, send: asgi.Send) -> None:
        await receive()
        async with open_runtime(self._settings) as rt:
            self._app = WebNode(rt)
            self.keys = {STRANGER: None, **await _people(rt)}
            async with self._app.run_background():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def _migrate(settings: Settings) -> None:
    settings.data_dir.mkdir(mode=0o700)
    db = Database(settings)
    await migrations.upgrade(db)
    await db.close()


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


CONFIGURATION = """
[checks]
negative_data_rejection.expected-statuses = [
  400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx",
]
"""
"""The default statuses and 413: a text may be so much too long that its body is too large."""

Run = Callable[[list[str], str], tuple[int, str]]
"""How schemathesis is called with its words, in a folder: its exit code, and what it said."""


def _in_another_process(words: list[str], folder: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "schemathesis.cli", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def _in_this_process(words: list[str], folder: str) -> tuple[int, str]:
    with chdir(folder), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # schemathesis opens the report once to see whether it can
        done = CliRunner().invoke(
            schemathesis.cli.schemathesis, [*words, "--url", f"http://{asgi.HOST}"]
        )
    return done.exit_code, done.output


def _run(
    run: Run,
    document: str,
    identity: str,
    key: str | None,
    exploration: Exploration,
) -> Finding:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        (Path(folder) / "schemathesis.toml").write_text(CONFIGURATION)
        words = ["run", document]
        words += [
            "--checks",
            "all",
            "--exclude-checks",
            ",".join(LEFT_OUT),
            "--phases",
            ",".join(exploration.phases),
            "--continue-on-failure",
        ]
        words += [
            "--max-examples",
            str(exploration.examples),
            "--seed",
            str(exploration.seed),
            "--report-json-path",
            str(report),
            "--no-color",
        ]
        words += ["--exclude-path-regex", f"({'|'.join(STREAMS)})$"]
        paths = exploration.paths
        words += ["--include-path-regex", paths] if paths else []
        words += ["--header", f"X-API-Key: {key}"] if key else []
        exit_code, told = run(words, folder)
        found: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {}
    operations = found.get("operations")
    if operations is None:  # it never got as far as the first request
        return Finding(identity, held=False, operations=0, reached=0, cases=0, told=told)
    count = operations["selected"] if paths else operations["total"] - len(STREAMS)
    held = exit_code == 0 and 0 < count == operations["tested"]
    return Finding(
        identity, held, count, operations["tested"], found["test_cases"]["generated"], told
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make proof openapi", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--examples", type=int, default=300, help="random requests per operation and identity"
    )
    parser.add_argument("--seed", type=int, help="Left out: a random one, printed.")
    parser.add_argument(
        "--database", default=None, help="the URL of an empty database; left out: SQLite"
    )
    parser.add_argument("--save", action="store_true", help="Write the figures to proofs/results.")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    report = Report("openapi: every operation, as four identities", seed)
    report.say("random requests per operation and identity", given.examples)
    for finding in explore(Exploration(given.examples, seed), database=given.database):
        report.say(f"{finding.identity}: requests", finding.cases)
        reached = f"{finding.reached} of {finding.operations}"
        report.bar(
            f"{finding.identity}: operations reached",
            reached,
            "all",
            held=0 < finding.operations == finding.reached,
        )
        told = "none" if finding.held else "some"
        report.bar(
            f"{finding.identity}: answers ≥ 500 or not as described",
            told,
            "none",
            held=finding.held,
        )
        if not finding.held:
            print(finding.told)
    if given.save:
        report.save("openapi")
    return 0 if report.show() else 1
