"""Modules that short commands load: most of their CPU time is spent on imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from refract.cli.commands import COMMAND_TARGETS
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
    ("links", "list"): CHANGES,
    ("keys", "list"): {"refract.links"},
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_short_command_loads_neither_the_web_app_nor_other_databases(
    data: Path, words: tuple[str, ...]
) -> None:
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
