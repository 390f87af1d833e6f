"""`refract status`: what runs, versions, clicks, jobs, disks and the last backup, at a glance."""

import json
from pathlib import Path
from typing import Any

import httpx

from refract.core.db.schema_state import HEAD
from refract.core.runtime import Runtime
from refract.core.worker_ids import lease_ids
from refract.server.status import load_stored_status
from tests.serving import refract, serving
from tests.waiting import eventually_blocking


async def test_the_database_says_the_same_on_each_system(rt: Runtime) -> None:
    async with lease_ids(rt.db, rt.clock):
        found = await load_stored_status(rt)

    assert found.database.processes == 1
    assert found.database.revision == HEAD
    assert found.database.bytes > 0
    names = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mysql": "MariaDB"}
    assert found.database.version.startswith(f"{names[rt.db.dialect]} ")
    assert (found.clicks.stored, found.clicks.pending, found.clicks.lost) == (0, 0, 0)
    assert found.clicks.last_stored_at is None
    assert (found.jobs.waiting, found.jobs.running, found.jobs.dead) == (0, 0, 0)


def test_a_server_its_clicks_and_its_backup(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, REFRACT_BACKGROUND="process") as served:
        place = {"REFRACT_DATA_DIR": str(data)}
        refract("shorten", "https://example.com/", "--name", "here", **place)
        assert httpx.get(f"{served.url}/here", trust_env=False).status_code == 302

        def read() -> Any:
            return json.loads(refract("status", "--json", **place).stdout)

        eventually_blocking(lambda: read()["clicks"]["stored"] == 1)
        before = refract("status", **place)
        assert before.returncode == 0, before.stderr
        assert f"ready at {served.url}" in before.stdout
        assert "process redirect: " in before.stdout
        assert "clicks     1 stored, the last " in before.stdout
        assert "0 pending; 0 lost" in before.stdout
        assert "backup     none yet: refract backup FILE" in before.stdout

        assert refract("backup", str(tmp_path / "copy.zip"), **place).returncode == 0
        assert read()["last_backup_at"] is not None
        assert {process["name"] for process in read()["server"]["processes"]} == {"0", "redirect"}

    stopped = refract("status", **place)
    assert stopped.returncode == 1
    assert f"unreachable at {served.url}" in stopped.stdout
    assert "clicks     1 stored" in stopped.stdout
    assert "used by 0 processes" in stopped.stdout


def test_a_database_that_is_away_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    done = refract(
        "status",
        REFRACT_DATA_DIR=str(tmp_path / "data"),
        REFRACT_DATABASE_URL="postgresql://refract:secret@127.0.0.1:9/refract",
        REFRACT_PORT="9",
    )

    assert done.returncode == 1
    assert "server     unreachable at http://127.0.0.1:9" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("database ")]
    assert "127.0.0.1:9" in line
    assert "secret" not in done.stdout + done.stderr


def test_without_an_installation_the_command_says_so(tmp_path: Path) -> None:
    done = refract("status", REFRACT_DATA_DIR=str(tmp_path / "absent"))

    assert done.returncode == 2
    assert "There's no installation" in done.stderr
