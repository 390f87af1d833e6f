"""Modules that short commands load: most of their CPU time is spent on imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
