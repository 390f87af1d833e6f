"""Broken set-ups, each of which `refract doctor` must report.

Regression: a misspelt variable, an invalid .mmdb, an unreachable model or collector, an archive
that is missing, unwritable or not shared, a read-only database user on a web node, and 0.0.0.0
without a base URL were not reported.
"""

import asyncio
import os
import re
import resource
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text

from refract.cli.doctor import run_checks
from refract.cli.doctor.findings import FindingStatus
from refract.clicks.spool.writer import SpoolWriter
from refract.core.db.session import Database
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from tests.conftest import make_settings
from tests.serving import refract
from tools.servers import free_port

NOWHERE = free_port()


@dataclass
class Bench:
    """A healthy set-up to break, and the means to break it with."""

    home: Path
    settings: Settings
    patch: pytest.MonkeyPatch
    web: str

    def with_(self, **changed: Any) -> Settings:
        return self.settings.model_copy(update=changed)

    def sql(self, *statements: str) -> Settings:
        with sqlite3.connect(self.home / "refract.db") as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()
        return self.settings


class _Answers(BaseHTTPRequestHandler):
    """A provider with another issuer, a model that rejects keys, public metrics, an old server."""

    def do_GET(self) -> None:
        status, body = {
            "/other/.well-known/openid-configuration": (
                200,
                b'{"issuer": "https://somebody.else"}',
            ),
            "/v1/models": (401, b"{}"),
            "/metrics": (200, b"refract_build_info 1"),
            "/ready": (200, b'{"status": "ready", "version": "0.0.1"}'),
        }.get(self.path, (404, b""))
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def bench(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, web: str) -> Bench:
    settings.data_dir.mkdir(mode=0o700)
    healthy = settings.model_copy(update={"archive_dir": tmp_path / "archive"})
    healthy.effective_archive_dir.mkdir(mode=0o700)
    healthy.backup_marker.touch()
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (65536, 65536))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _path: usage._replace(free=100 << 30)
    )  # whatever this machine has
    return Bench(tmp_path, healthy, monkeypatch, web)


class Row(NamedTuple):
    """A way to break a set-up, and what must be said about it."""

    name: str
    breaks: Callable[[Bench], Settings]
    verdict: FindingStatus
    subject: str
    says: str


def made(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def directory(path: Path, mode: int) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    return path


def few_inodes(bench: Bench) -> Settings:
    real = os.statvfs(bench.home)
    few = os.statvfs_result((*tuple(real)[:5], 1_000_000, 10, 10, *tuple(real)[8:10]))
    bench.patch.setattr(os, "statvfs", lambda _path: few)
    return bench.settings


def few_files(bench: Bench) -> Settings:
    bench.patch.setattr(resource, "getrlimit", lambda _what: (256, 256))
    return bench.settings


def full_disk(bench: Bench, free: int) -> Settings:
    usage = shutil.disk_usage(bench.home)
    bench.patch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=free))
    return bench.settings


def unwritable(bench: Bench, path: Path) -> Path:
    """Even root cannot write below /proc."""
    path.rmdir()
    path.symlink_to("/proc/self/fdinfo")
    return path


def damaged(bench: Bench) -> Settings:
    bench.sql("PRAGMA journal_mode = DELETE", "VACUUM")
    file = bench.home / "refract.db"
    data = bytearray(file.read_bytes())
    for page in range(4, len(data) // 4096 - 1, 3):
        data[page * 4096 : page * 4096 + 1500] = os.urandom(1500)
    file.write_bytes(bytes(data))
    return bench.settings


def old_backup(bench: Bench) -> Settings:
    os.utime(bench.settings.backup_marker, (0, 1_700_000_000))
    return bench.settings


def sparse_spool(bench: Bench) -> Settings:
    spool = SpoolWriter(bench.settings.effective_spool_dir, node="here")
    (segment,) = [path for path in spool.directory.iterdir() if path.suffix == ".clicks"] or [
        spool.directory / "00000001.clicks"
    ]
    spool.close()
    with segment.open("ab") as file:
        file.truncate(300 << 20)
    return bench.settings


def unreadable(bench: Bench) -> Settings:
    made(bench.settings.effective_spool_dir / "set-aside/a.bytes")
    return bench.settings


def no_database(bench: Bench) -> Settings:
    return bench.with_(database_url=f"sqlite:///{made(bench.home / 'no.db', b'hello' * 999)}")


_held: list[SpoolWriter] = []


def running_elsewhere(bench: Bench, port: int) -> Settings:
    """A server has the data directory open."""
    _held.append(SpoolWriter(bench.settings.effective_spool_dir, node="here"))
    return bench.with_(port=port)


def issuer(url: str, **given: Any) -> dict[str, Issuer]:
    return {"corp": Issuer(url=url, client_id="refract", **given)}


DEAD_JOB = (
    "INSERT INTO jobs (id, kind, payload, status, attempt_count, max_tries, run_at, created_at)"
    " VALUES (1, 'x', '{}', 'DEAD', 3, 3, 0, 0)"
)
ABSENT_FILE = (
    "INSERT INTO click_archives (day, part, name, events, link_events, size, first_at, last_at,"
    " created_at) VALUES ('2026-01-01', 1, '2026-01-01-1-ab.parquet', 1, 1, 1, 0, 0, 0)"
)
ERROR, WARN = FindingStatus.ERROR, FindingStatus.WARNING
ROWS = [
    Row(
        "production without base URL",
        lambda b: b.with_(environment="production", base_url=None),
        ERROR,
        "address",
        "only this machine",
    ),
    Row(
        "production on http",
        lambda b: b.with_(environment="production"),
        WARN,
        "address",
        "aren't encrypted",
    ),
    Row(
        "0.0.0.0 without base URL",
        lambda b: b.with_(host="0.0.0.0", base_url=None),  # noqa: S104 - checked, not bound
        ERROR,
        "address",
        "only work on this machine",
    ),
    Row(
        "every address is a proxy",
        lambda b: b.with_(trusted_proxies=(ip_network("0.0.0.0/0"),)),
        ERROR,
        "proxies",
        "forge their IP address",
    ),
    Row(
        "https without proxies",
        lambda b: b.with_(base_url="https://go.test"),
        WARN,
        "proxies",
        "no proxy is trusted",
    ),
    Row(
        "proxies without base URL",
        lambda b: b.with_(base_url=None, trusted_proxies=(ip_network("10.0.0.1/32"),)),
        WARN,
        "proxies",
        "not set",
    ),
    Row(
        "a secret per machine",
        lambda b: b.with_(secret_key=None, database_url=f"postgresql://u@127.0.0.1:{NOWHERE}/x"),
        WARN,
        "secret",
        "Another machine",
    ),
    Row("redirect on SQLite", lambda b: b.with_(role="redirect"), WARN, "role", "same machine"),
    Row(
        "no provider in production",
        lambda b: b.with_(environment="production"),
        WARN,
        "sign-in",
        "from the command line",
    ),
    Row(
        "no block list",
        lambda b: b.with_(blocklist_path=b.home / "absent"),
        ERROR,
        "blocklist",
        "Can't read",
    ),
    Row("no .mmdb", lambda b: b.with_(geoip_path=b.home / "absent"), ERROR, "geoip", "Can't read"),
    Row(
        "garbage .mmdb",
        lambda b: b.with_(geoip_path=made(b.home / "x.mmdb", b"x" * 5000)),
        ERROR,
        "geoip",
        "not an .mmdb database",
    ),
    Row(
        "far too many processes",
        lambda b: b.with_(workers=64),
        WARN,
        "processes",
        "slow each other down",
    ),
    Row(
        "no metrics token",
        lambda b: b.with_(host="0.0.0.0"),  # noqa: S104 - checked, not bound
        WARN,
        "metrics",
        "METRICS_TOKEN is not set",
    ),
    Row("public metrics", lambda b: b.with_(base_url=b.web), ERROR, "metrics", "Anyone can read"),
    Row(
        "public address away",
        lambda b: b.with_(base_url=f"http://127.0.0.1:{NOWHERE}"),
        WARN,
        "public address",
        "doesn't respond",
    ),
    Row(
        "data directory is a file",
        lambda b: b.with_(data_dir=made(b.home / "file") / "below"),
        ERROR,
        "data directory",
        "is a file",
    ),
    Row(
        "data directory cannot be written",
        lambda b: b.with_(data_dir=unwritable(b, directory(b.home / "ro", 0o700))),
        ERROR,
        "data directory",
        "can't write",
    ),
    Row(
        "data directory open to all",
        lambda b: b.with_(data_dir=directory(b.home / "o", 0o755)),
        WARN,
        "data directory",
        "can read",
    ),
    Row("disk full", lambda b: full_disk(b, 1 << 20), ERROR, "data directory", "0.0 GiB free"),
    Row(
        "disk nearly full",
        lambda b: full_disk(b, 500 << 20),
        WARN,
        "data directory",
        "0.5 GiB free",
    ),
    Row("no inodes", few_inodes, ERROR, "data directory", "inodes left"),
    Row(
        "archive missing",
        lambda b: b.with_(archive_dir=b.home / "absent"),
        ERROR,
        "archive",
        "doesn't exist",
    ),
    Row(
        "archive cannot be written",
        lambda b: b.with_(archive_dir=unwritable(b, directory(b.home / "ar", 0o700))),
        ERROR,
        "archive",
        "can't write",
    ),
    Row(
        "archive not shared",
        lambda b: b.with_(role="web", archive_dir=None),
        WARN,
        "archive",
        "its own data directory",
    ),
    Row(
        "archives differ",
        lambda b: b.sql(ABSENT_FILE),
        ERROR,
        "archive",
        "1 of 1 archive file missing",
    ),
    Row(
        "never backed up",
        lambda b: b.with_(archive_dir=directory(b.home / "new", 0o700)),
        WARN,
        "backup",
        "No backup yet",
    ),
    Row("old backup", old_backup, WARN, "backup", "days old"),
    Row(
        "no process stores clicks",
        lambda b: b.with_(role="redirect"),
        ERROR,
        "clicks",
        "No process stores",
    ),
    Row("clicks pile up", sparse_spool, WARN, "clicks", "MiB of clicks are pending"),
    Row(
        "unreadable clicks",
        unreadable,
        WARN,
        "clicks",
        "1 file with unreadable clicks",
    ),
    Row(
        "few open files",
        few_files,
        WARN,
        "open files",
        "limit is 256",
    ),
    Row(
        "server not reachable",
        lambda b: running_elsewhere(b, NOWHERE),
        WARN,
        "server",
        "doesn't respond",
    ),
    Row(
        "server of another version",
        lambda b: running_elsewhere(b, int(b.web.rpartition(":")[2])),
        WARN,
        "server",
        "version 0.0.1",
    ),
    Row(
        "no database",
        lambda b: b.with_(database_url=f"sqlite:///{b.home}/none.db"),
        ERROR,
        "database",
        "there's no database",
    ),
    Row(
        "database away",
        lambda b: b.with_(database_url=f"postgresql://u@127.0.0.1:{NOWHERE}/x"),
        ERROR,
        "database",
        "can't be reached",
    ),
    Row("no database file", no_database, ERROR, "database", "no.db"),
    Row("damaged database", damaged, ERROR, "database", "damaged|malformed"),
    Row(
        "older schema",
        lambda b: b.sql("UPDATE alembic_version SET version_num = '0019'"),
        WARN,
        "schema",
        "is at revision 0019",
    ),
    Row(
        "newer schema",
        lambda b: b.sql("UPDATE alembic_version SET version_num = '9999'"),
        ERROR,
        "schema",
        "is at revision 9999",
    ),
    Row(
        "half a restore",
        lambda b: b.sql("UPDATE alembic_version SET version_num = 'restoring-0001'"),
        ERROR,
        "schema",
        "was interrupted",
    ),
    Row(
        "another directory",
        lambda b: b.with_(data_dir=b.home / "other", database_url=None),
        ERROR,
        "database",
        "no installation",
    ),
    Row("dead jobs", lambda b: b.sql(DEAD_JOB), WARN, "jobs", "1 job failed"),
    Row(
        "redis away",
        lambda b: b.with_(redis_url=f"redis://127.0.0.1:{NOWHERE}/0"),
        WARN,
        "redis",
        "isn't responding",
    ),
    Row(
        "issuer away",
        lambda b: b.with_(issuers=issuer(f"http://127.0.0.1:{NOWHERE}")),
        ERROR,
        "issuer",
        "doesn't respond",
    ),
    Row(
        "issuer by another name",
        lambda b: b.with_(issuers=issuer(f"{b.web}/other")),
        ERROR,
        "issuer",
        "reports the issuer https://somebody",
    ),
    Row(
        "issuer open to the world",
        lambda b: b.with_(issuers=issuer("https://accounts.google.com")),
        WARN,
        "issuer corp",
        "Anyone",
    ),
    Row(
        "model away",
        lambda b: b.with_(model_url=f"http://127.0.0.1:{NOWHERE}/v1", model_name="m"),
        ERROR,
        "model",
        "doesn't respond",
    ),
    Row(
        "model refuses",
        lambda b: b.with_(model_url=f"{b.web}/v1", model_name="m"),
        ERROR,
        "model",
        "rejected the key",
    ),
    Row(
        "collector away",
        lambda b: b.with_(otlp_url=f"http://127.0.0.1:{NOWHERE}/v1/traces"),
        ERROR,
        "traces",
        "doesn't respond",
    ),
]
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@on_sqlite
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
async def test_every_breakage_is_named(row: Row, bench: Bench) -> None:
    try:
        found = await run_checks(await asyncio.to_thread(row.breaks, bench))
    finally:
        while _held:
            _held.pop().close()

    told = [
        finding
        for finding in found
        if finding.status is row.verdict and finding.subject == row.subject
    ]
    assert [finding for finding in told if re.search(row.says, finding.message)], [
        finding.as_json() for finding in found
    ]


def test_there_are_thirty_and_more() -> None:
    assert len({row.name for row in ROWS}) >= 30


@on_sqlite
async def test_a_healthy_set_up_has_nothing_to_name(bench: Bench) -> None:
    found = await run_checks(bench.settings)

    assert [finding.as_json() for finding in found if finding.status is not FindingStatus.OK] == []


@pytest.mark.parametrize("database", ["postgresql", "mysql"], indirect=True)
async def test_a_user_that_may_only_read_is_named_on_a_web_node(
    database: str, tmp_path: Path
) -> None:
    db = Database(make_settings(tmp_path, database_url=database))
    user, name = f"doctor{os.getpid()}", db.url.database
    make_user = (
        f"CREATE ROLE {user} LOGIN" if db.dialect == "postgresql" else f"CREATE USER {user}@'%'"
    )
    whom = (
        f"ALL TABLES IN SCHEMA public TO {user}"
        if db.dialect == "postgresql"
        else f"{name}.* TO {user}@'%'"
    )
    gone = (
        [f"DROP OWNED BY {user}", f"DROP ROLE {user}"]
        if db.dialect == "postgresql"
        else [f"DROP USER {user}@'%'"]
    )
    try:
        async with db.engine.begin() as connection:
            for statement in (make_user, f"GRANT SELECT ON {whom}"):
                await connection.execute(text(statement))
        url = db.url.set(
            username=user, password=None, drivername=db.url.get_backend_name()
        ).render_as_string(hide_password=False)
        settings = make_settings(tmp_path, database_url=url, role="web")
        found = await run_checks(settings)
        assert [one.message for one in found if one.status is ERROR] == [
            f"{user} can't write, which a web node needs."
        ]
        reading = await run_checks(
            settings.model_copy(update={"role": "redirect", "spool_reader": "elsewhere"})
        )
        assert [one.message for one in reading if one.subject == "database user"] == [
            f"{user} is enough: a redirect node only reads."
        ]
    finally:
        async with db.engine.begin() as connection:
            for statement in gone:
                await connection.execute(text(statement))
        await db.close()


async def test_more_connections_than_the_server_has_are_named(
    tmp_path: Path, postgresql_url: str
) -> None:
    found = await run_checks(
        make_settings(tmp_path, database_url=postgresql_url, workers=8, database_pool_size=200)
    )

    assert "connections" in [one.subject for one in found if one.status is ERROR]


def test_a_misspelt_variable_is_named(tmp_path: Path) -> None:
    done = refract("doctor", "--data-dir", str(tmp_path), REFRACT_BASEURL="https://go.example.com")

    assert done.returncode != 0
    assert "REFRACT_BASE_URL" in done.stdout + done.stderr


def test_a_misspelt_variable_that_is_let_pass_is_named_too(tmp_path: Path) -> None:
    given = {"REFRACT_ENVIROMENT": "production", "REFRACT_UNKNOWN_SETTINGS": "warn"}
    done = refract("doctor", "--data-dir", str(tmp_path), **given)

    assert "REFRACT_ENVIROMENT is not a setting. Did you mean REFRACT_ENVIRONMENT?" in done.stdout
