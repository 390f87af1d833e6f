"""Modules that short commands load: most of their CPU time is spent on imports."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from refract.cli.commands import COMMAND_TARGETS
from tests.cli.conftest import Run
from tests.serving import ROOT

CODE = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from refract.cli import main
main()
"""
WEB = {"fastapi", "starlette", "jinja2", "uvicorn", "babel", "refract.app", "refract.server.node"}
OTHER_DATABASES = {"asyncpg", "asyncmy", "sqlalchemy.dialects.postgresql"}
NEVER = (
    WEB
    | OTHER_DATABASES
    | {
        "alembic",
        "cryptography",
        "duckdb",
        "httpx",
        "joserfc",
        "prometheus_client",
        "pygments",  # by what of rich draws tracebacks
        "redis",
        "refract.clicks",
        "refract.library",
        "refract.lists",
        "refract.redirect",
    }
)
CHANGES = {"refract.links.service", "refract.links.safety", "refract.cli.links.edit"}
READING = [
    ("keys", "list"),
    ("links", "list"),
    ("links", "show", "report"),
    ("links", "resolve", "/report"),
    ("links", "history", "report"),
]
WRITES = {"refract.core.worker_ids"}
LOAD_ALONE = """
import os, sys
import fastapi, jinja2, pydantic, rich.table, sqlalchemy.ext.asyncio, typer
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        __import__(name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{name} cannot be imported first")
"""
COMMANDS: dict[tuple[str, ...], set[str]] = {
    ("shorten", "https://example.com/report"): {"rich"},
    ("links", "list"): CHANGES | WRITES,
    ("keys", "list"): {"refract.links"} | WRITES,
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_short_command_loads_neither_the_web_app_nor_other_databases(
    data: Path, run: Run, words: tuple[str, ...]
) -> None:
    assert run("keys", "list").code == 0  # the first command creates the owner
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "", "REFRACT_DATA_DIR": str(data)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    loaded = set(json.loads(done.stderr.splitlines()[-1]))

    assert "sqlalchemy" in loaded
    assert not loaded & (NEVER | COMMANDS[words])


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_command_that_only_reads_writes_nothing(
    data: Path, run: Run, words: tuple[str, ...]
) -> None:
    """Each of them claimed and released a worker id, in three transactions."""
    assert run("shorten", "https://example.com/report", "--name", "report").code == 0
    before = _dump(data)

    assert run(*words).code == 0

    assert _dump(data) == before


def _dump(data: Path) -> list[str]:
    with closing(sqlite3.connect(data / "refract.db")) as file:
        return list(file.iterdump())


def test_every_command_can_be_imported_first() -> None:
    """Commands of other tests run in a process that has loaded all of them: no cycle shows."""
    modules = sorted({f"refract.cli.{t.partition(':')[0]}" for t in COMMAND_TARGETS.values()})
    done = subprocess.run(
        [sys.executable, "-c", LOAD_ALONE, *modules],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
