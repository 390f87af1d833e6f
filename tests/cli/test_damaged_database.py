"""A damaged SQLite file.

Finding: `/ready` was green, the API answered 500, and a backup ended in raw SQL.
"""

import sqlite3
from pathlib import Path

import httpx
import pytest

from tests.cli.conftest import Run
from tests.serving import refract, serving
from tests.waiting import PATIENCE


@pytest.fixture
def damaged(run: Run, data: Path) -> Path:
    """An installation whose table of links lies on a page that was overwritten."""
    assert run("shorten", "https://example.com", "--name", "x").code == 0
    database = sqlite3.connect(data / "refract.db")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = database.execute("PRAGMA page_size").fetchone()[0]
    page = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'links'").fetchone()[0]
    database.close()
    with (data / "refract.db").open("r+b") as file:
        file.seek(size * (page - 1))
        file.write(b"\xff" * size)
    return data


def test_a_damaged_file_is_said_by_the_server_and_by_a_backup(
    run: Run, damaged: Path, tmp_path: Path
) -> None:
    with serving(damaged) as server:
        key = refract("keys", "create", "--name", "n", "--data-dir", str(damaged)).stdout.strip()
        answer = httpx.get(
            f"{server.url}/api/v1/links", headers={"x-api-key": key}, timeout=PATIENCE
        )
        ready = httpx.get(f"{server.url}/ready", timeout=PATIENCE)
    assert (answer.status_code, answer.json()["code"]) == (503, "STORE_DAMAGED")
    assert ready.status_code == 503
    assert "damaged" in ready.json()["dependencies"]["database"]["detail"]
    assert "Traceback" not in server.output

    saved = run("backup", tmp_path / "b.zip", into=damaged)

    assert (saved.code, "damaged" in saved.err, "SQL" in saved.err) == (1, True, False), saved.err
