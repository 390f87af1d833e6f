"""Every proof in its short size: the same code, fewer faults. Only `make proof` checks times."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proofs import (
    backup,
    fleet,
    forget,
    herd,
    ids,
    kill,
    library_import,
    limits,
    merge,
    migrations,
    outage,
    passwords,
    restart,
    revoked,
    slow_sockets,
    strangers,
    upgrade,
)
from proofs.harness import disk
from proofs.harness.report import Report
from refract.core.db.session import Database
from refract.core.settings.model import Settings
from refract.migrations import upgrade as upgrade_schema
from tests.services_plugin import ABSENT
from tools import packages

ROOT = Path(__file__).parents[2]
SEED = 20260615


async def _held(reports: AsyncIterator[Report]) -> None:
    async for report in reports:
        print(report)
        assert not report.broken


async def test_kill(tmp_path: Path) -> None:
    await _held(kill.prove(tmp_path, "sqlite", "short", SEED))


async def test_the_database_restarted(tmp_path: Path, postgresql_url: str) -> None:
    report = await kill.run_restarts(tmp_path, "postgresql", kill.SIZES["short"], SEED)
    print(report)
    assert not report.broken


async def test_click_limits(tmp_path: Path, postgresql_url: str, redis_url: str) -> None:
    await _held(limits.prove(tmp_path, "postgresql", "short", SEED))


async def test_forget(tmp_path: Path, postgresql_url: str) -> None:
    await _held(forget.prove(tmp_path, "postgresql", "short", SEED))


async def test_revoked_by_the_workers_of_one_server(tmp_path: Path) -> None:
    await _held(revoked.prove(tmp_path, "sqlite", "short", SEED))


async def test_revoked_by_servers_of_their_own(tmp_path: Path, postgresql_url: str) -> None:
    await _held(revoked.prove(tmp_path, "postgresql", "short", SEED))


async def test_passwords(tmp_path: Path) -> None:
    await _held(passwords.prove(tmp_path, "sqlite", "short", SEED))


async def test_restart(tmp_path: Path) -> None:
    if packages.find("nginx") is None:
        pytest.skip(f"{ABSENT}nginx")
    await _held(restart.prove(tmp_path, "sqlite", "short", SEED))


async def test_upgrade_by_reload(tmp_path: Path) -> None:
    """Regression: SIGHUP replaced processes without migrating: 500 while `/ready` was green."""
    for workers in (1, 2):
        (tmp_path / str(workers)).mkdir()
        report = await upgrade.by_reload(
            tmp_path / str(workers), "sqlite", upgrade.SIZES["short"], SEED, workers
        )
        print(report)
        assert not report.broken


async def test_upgrade_of_two_nodes_and_back(tmp_path: Path, postgresql_url: str) -> None:
    """Old code did not start on a newer schema, and nothing could take a schema back."""
    if packages.find("nginx") is None:
        pytest.skip(f"{ABSENT}nginx")
    report = await upgrade.rolling(tmp_path, "postgresql", upgrade.SIZES["short"], SEED)
    print(report)
    assert not report.broken


async def test_fleet(tmp_path: Path) -> None:
    for name in ("postgresql", "redis"):
        if packages.find(name) is None:
            pytest.skip(f"{ABSENT}{name}")
    await _held(fleet.prove(tmp_path, "postgresql", "short", SEED))


async def test_outage(tmp_path: Path) -> None:
    for name in ("mysql", "redis"):
        if packages.find(name) is None:
            pytest.skip(f"{ABSENT}{name}")
    await _held(outage.prove(tmp_path, "mysql", "short", SEED))


async def test_migrations(tmp_path: Path, mysql_url: str) -> None:
    """On MariaDB, where a step that is cut off stays half done."""
    await _held(migrations.prove(tmp_path, "mysql", "short", SEED))


async def test_every_revision_goes_down_with_rows_there(tmp_path: Path) -> None:
    """On SQLite, where taking a table apart may meet rows that point at it."""
    db = Database(Settings(data_dir=tmp_path))
    await upgrade_schema(db)
    assert await migrations.down_and_up(db) == 0
    await db.close()


async def test_backup(tmp_path: Path, postgresql_url: str, mysql_url: str) -> None:
    await _held(backup.prove(tmp_path, "sqlite", "short", SEED))


async def test_ids(tmp_path: Path) -> None:
    await _held(ids.prove(tmp_path, "sqlite", "short", SEED))


async def test_slow_sockets(tmp_path: Path) -> None:
    await _held(slow_sockets.prove(tmp_path, "sqlite", "short", SEED))


async def test_strangers(tmp_path: Path) -> None:
    await _held(strangers.prove(tmp_path, "sqlite", "short", SEED))


async def test_herd(tmp_path: Path) -> None:
    await _held(herd.prove(tmp_path, "sqlite", "short", SEED))


async def test_merge(tmp_path: Path, mysql_url: str) -> None:
    await _held(merge.prove(tmp_path, "mysql", "short", SEED))


async def test_library_import(tmp_path: Path, postgresql_url: str) -> None:
    await _held(library_import.prove(tmp_path, "postgresql", "short", SEED))


def test_disk_full() -> None:
    """In a process of its own, since it needs a mount namespace of its own."""
    if not disk.possible():
        pytest.skip(f"{ABSENT}a namespace of our own, for a small disk")
    words = [
        "disk-full",
        "--size",
        "short",
        "--seed",
        str(SEED),
        "--database",
        "sqlite",
        "--untimed",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "proofs", *words],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
