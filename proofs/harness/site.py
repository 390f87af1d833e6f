"""A whole installation for a proof to break.

Database, data directory and a real `refract serve`, always removed again.
"""

import asyncio
import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import make_url, text

from proofs.harness import proc
from proofs.harness.wire import Cut, Wire, get
from refract import migrations
from refract.core.db.session import Database
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from tools.servers import free_port
from tools.services import VARIABLES

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0
OPEN = {
    "REFRACT_SPOOL_READER": "elsewhere",
    "REFRACT_KEY_REQUESTS_PER_HOUR": "unlimited",
    "REFRACT_CREATES_PER_HOUR": "unlimited",
    "REFRACT_MISSES_PER_MINUTE": "unlimited",
}
"""A proof's load would run into every limit that protects a real site."""


class NotServing(Exception):
    """The server did not come up, or went away; the message carries the end of its log."""


class Site:
    """One `refract serve`, which may be killed and started again on the same port, data and
    database.
    """

    def __init__(
        self,
        home: Path,
        database_url: str | None,
        workers: int,
        environment: Mapping[str, str],
        before: Sequence[str],
    ) -> None:
        self.home = home
        self.data = home / "data"
        self.port = free_port()
        self.workers = workers
        self.database_url = database_url
        self._environment = dict(environment)
        self._before = list(before)
        self._log = home / f"serve-{self.port}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._own: set[int] = set()

    def settings(self) -> Settings:
        """For looking at the data directly, beside the server."""
        spool = self._environment.get("REFRACT_SPOOL_DIR")
        return Settings(
            data_dir=self.data,
            port=self.port,
            database_url=self.database_url,
            spool_dir=Path(spool) if spool else None,
        )

    @asynccontextmanager
    async def runtime(self) -> AsyncIterator[Runtime]:
        """Refract itself, in this process, on the same data."""
        async with open_runtime(self.settings()) as rt:
            yield rt

    def environment(self) -> dict[str, str]:
        plain = {
            name: value for name, value in os.environ.items() if not name.startswith("REFRACT_")
        }
        database = {"REFRACT_DATABASE_URL": self.database_url} if self.database_url else {}
        return (
            plain
            | OPEN
            | database
            | {"PYTHONPATH": str(ROOT / "src"), "REFRACT_LOG_FORMAT": "json"}
            | self._environment
        )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def pid(self) -> int:
        """The process that was started: the parent, or a server without one."""
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, stdin: int | None = None) -> None:
        """Start and return at once."""
        command = [
            *self._before,
            sys.executable,
            "-m",
            "refract",
            "serve",
            "--port",
            str(self.port),
        ]
        command += ["--data-dir", str(self.data), "--workers", str(self.workers)]
        with self._log.open("ab") as sink:
            self._process = subprocess.Popen(
                command, stdin=stdin, stdout=sink, stderr=sink, env=self.environment(), cwd=ROOT
            )

    def refract(self, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Another command on the same data, to its end."""
        environment = self.environment() | {"REFRACT_DATA_DIR": str(self.data)} | variables
        command = [sys.executable, "-m", "refract", *words]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            cwd=ROOT,
            timeout=120,
            check=False,
        )

    def kill_all(self) -> None:
        """SIGKILL to every process of ours at once, and their burial."""
        for pid in self.family():
            proc.kill(pid)
        self.buried()

    def buried(self) -> None:
        """Wait for the death of a process that was killed."""
        assert self._process is not None
        self._process.wait()

    async def until_serving(self, seconds: float = PATIENCE) -> float:
        """Wait until everything is answered; how long it took."""
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            if not self.alive:
                raise NotServing(f"the server ended while starting:\n{self.log[-3000:]}")
            with contextlib.suppress(OSError, Cut, TimeoutError):
                wire = await Wire.open(self.port)
                answer = await wire.ask(get("/ready"), 5.0)
                wire.close()
                if b'"starting"' not in answer.body:
                    return time.monotonic() - began
            await asyncio.sleep(0.02)
        raise NotServing(f"no answer after {seconds:g} s:\n{self.log[-3000:]}")

    async def until_complete(self, seconds: float = PATIENCE) -> None:
        """Wait until every server process is there and accepts connections."""
        await self.until_serving(seconds)
        deadline = time.monotonic() + seconds
        while not self.is_complete():
            if time.monotonic() > deadline:
                raise NotServing(
                    f"only {len(self.servers())} of {self.process_count} processes, of which"
                    f" {len(self.listening())} accept connections:\n{self.log[-3000:]}"
                )
            await asyncio.sleep(0.05)

    def servers(self) -> list[int]:
        """The processes that answer, or will once they have started."""
        if not self.alive:
            return []
        if self.process_count == 1:
            return [self.pid]
        return [*self._children("redirecting"), *self._children("serving")]

    def family(self) -> list[int]:
        """All processes, a server first."""
        return list(dict.fromkeys([*self.servers(), self.pid]))

    def is_complete(self) -> bool:
        """Whether every server process is there, and those that should accept connections."""
        accepting = 1 if self.redirects_apart else self.workers
        return len(self.servers()) >= self.process_count and len(self.listening()) >= accepting

    @property
    def process_count(self) -> int:
        """The number of processes that answer."""
        return self.workers + self.redirects_apart

    @property
    def redirects_apart(self) -> bool:
        """Whether one process only redirects, and passes everything else to the others."""
        environment = self._environment
        return (
            environment.get("REFRACT_ROLE", "all") == "all"
            and environment.get("REFRACT_BACKGROUND", "process") == "process"
        )

    def _children(self, kind: str) -> list[int]:
        children = proc.children(self.pid) if self.alive else []
        # A fork server is between them until it ends.
        below = [*children, *(pid for child in children for pid in proc.children(child))]
        return [pid for pid in below if proc.command(pid).startswith(f"refract: {kind}")]

    def listening(self) -> list[int]:
        """Those server processes that wait for connections by now."""
        return [pid for pid in self.servers() if proc.polls_a_listener(pid, self.port)]

    def connected(self) -> dict[int, int]:
        """By the port of each client's end, the server process it is connected to."""
        return proc.connections(self.port, self.servers())

    def holding(self) -> list[int]:
        """Those server processes that have somebody connected."""
        return sorted(set(self.connected().values()))

    def ingester(self) -> int | None:
        """The process that applies this site's spools at the moment."""
        return proc.lock_holder(self.settings().effective_spool_dir / "ingester.lock")

    async def stop(self, seconds: float = PATIENCE) -> int:
        """SIGTERM to the process we started, and its exit status."""
        process = self._process
        if process is None:
            return 0
        if process.poll() is None:
            process.terminate()
        return await asyncio.to_thread(process.wait, seconds)

    def discard(self) -> None:
        """Leave nothing running that we started."""
        process = self._process
        if process is None:
            return
        family = [process.pid, *proc.descendants(process.pid)] if process.poll() is None else []
        for pid in [*family, *proc.working_for(self.data)]:
            proc.kill(pid)
        process.wait()


@asynccontextmanager
async def site(
    home: Path,
    dialect: str = "sqlite",
    *,
    workers: int = 1,
    url: str | None = None,
    before: Sequence[str] = (),
    **environment: str,
) -> AsyncIterator[Site]:
    """A migrated installation, not yet started.

    Gone when the block ends, and so is its database unless `url` names one.
    """
    async with contextlib.nullcontext(url) if url else database(dialect) as chosen:
        made = Site(home, chosen, workers, environment, before)
        made.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        db = Database(made.settings())
        await migrations.upgrade(db)
        await db.close()
        try:
            yield made
        finally:
            made.discard()


@asynccontextmanager
async def database(dialect: str) -> AsyncIterator[str | None]:
    """The URL of an empty database on the server that REFRACT_TEST_… names, dropped at the end.

    None: SQLite in the data directory.
    """
    if dialect == "sqlite":
        yield None
        return
    server = os.environ.get(VARIABLES[dialect])
    if not server:
        raise SystemExit(f"{dialect} is absent: run this by `make proof`, which starts one")
    name = f"refract_proof_{secrets.token_hex(4)}"
    await _administer(server, f"CREATE DATABASE {name}")
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        await _administer(
            server, f"DROP DATABASE {name}" + (" WITH (FORCE)" if dialect == "postgresql" else "")
        )


async def _administer(server: str, statement: str) -> None:
    db = Database(Settings(data_dir=Path(), database_url=server))
    try:
        async with db.engine.connect() as connection:
            autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await autocommit.execute(text(statement))
    finally:
        await db.close()
