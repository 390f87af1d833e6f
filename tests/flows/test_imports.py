"""What a role loads is what it needs.

Memory and the time to the first redirect follow from this.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import ROOT, refract

CODE = """
import asyncio, json, sys
from refract.server import process
from refract.core.log import configure_logging
from refract.core.runtime import open_runtime
from refract.core.settings.loader import load_settings

async def main():
    settings = load_settings()
    configure_logging(settings)
    async with open_runtime(settings, makes_ids=settings.role != "redirect") as rt:
        node = process.load_node_class(settings.role)(rt)
        node.protocol_class
        async with node.run_background():
            first = sorted(sys.modules)
            await node.wait_until_complete()
            await asyncio.sleep(0.2)
            return first

first = asyncio.run(main())
print(json.dumps([first, sorted(sys.modules)]))
"""
COMMAND = (
    "from refract.cli.commands import COMMAND_TARGETS;"
    " from refract.cli.groups import LazyCommands; LazyCommands(COMMAND_TARGETS)['serve']"
)
HEAVY = {
    "alembic",
    "duckdb",
    "numpy",
    "datasketches",
    "trafilatura",
    "ua_parser",
    "pyarrow",
    "asyncpg",
    "asyncmy",
    "sqlalchemy.dialects.mysql",
    "sqlalchemy.dialects.postgresql",
    "typer",
    "redis",
}
NEVER = {
    "redirect": (
        HEAVY
        | {
            "babel",
            "fastapi",
            "httpx",
            "refract.app",
            "refract.migrations.tables",
            "refract.admin.jobs",
            "refract.jobs.worker",
            "refract.clicks.ingest.ingester",
        }
    ),
    "worker": (
        HEAVY
        | {
            "babel",
            "fastapi",
            "jinja2",
            "segno",
            "refract.app",
            "refract.redirect.protocol",
            "refract.redirect.asgi",
        }
    ),
    "web": HEAVY | {"refract.admin.jobs", "refract.migrations.tables"},
    "all": HEAVY | {"refract.migrations.tables"},
}
ALWAYS = {
    "redirect": {"refract.redirect.protocol"},
    "worker": {"refract.jobs.worker", "refract.clicks.ingest.ingester"},
    "web": {"fastapi", "refract.redirect.protocol", "refract.clicks.ingest.ingester"},
    "all": {
        "fastapi",
        "refract.redirect.protocol",
        "refract.jobs.worker",
        "refract.clicks.ingest.ingester",
    },
}
LATER = {
    "babel",
    "fastapi",
    "refract.app",
    "refract.admin.jobs",
    "refract.clicks.ingest.ingester",
    "refract.library",
}
"""Loaded while links are followed already."""


@pytest.mark.parametrize("role", NEVER)
def test_a_role_loads_what_it_needs_and_no_more(tmp_path: Path, role: str) -> None:
    assert refract("migrate", "--data-dir", str(tmp_path)).returncode == 0
    environment = {
        "PYTHONPATH": str(ROOT / "src"),
        "REFRACT_ROLE": role,
        "REFRACT_DATA_DIR": str(tmp_path),
        "PATH": "",
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    first, loaded = map(set, json.loads(done.stdout))

    assert not loaded & NEVER[role]
    assert loaded >= ALWAYS[role]
    if role != "worker":
        assert "refract.redirect.protocol" in first
        assert not first & LATER


def _load(code: str) -> set[str]:
    """Return the modules that a process has loaded after this code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import json, sys; print(json.dumps(sorted(sys.modules)))"],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        capture_output=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def test_the_redirecting_process_of_role_all_loads_no_pages_no_jobs_and_no_sqlalchemy() -> None:
    assert not _load("import refract.server.redirect_process") & (
        NEVER["redirect"]
        | {"jinja2", "sqlalchemy", "refract.registry", "refract.server.node", "refract.library"}
    )


def test_the_parent_of_role_all_loads_neither_settings_nor_the_command_line() -> None:
    assert not _load("import refract.server.parent") & (
        HEAVY | {"pydantic", "sqlalchemy", "starlette", "uvicorn", "uvloop", "refract.cli"}
    )


def test_serve_loads_no_other_command_and_starts_a_process_before_it_loads_a_database() -> None:
    assert not _load(COMMAND) & (
        HEAVY - {"typer"}
        | {
            "sqlalchemy",
            "uvicorn",
            "starlette",
            "httpx",
            "jinja2",
            "refract.server.node",
            "refract.admin.jobs",
            "refract.links",
        }
    )
