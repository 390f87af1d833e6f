"""A fleet on one machine: redirect, web and worker nodes, each with a data directory of its own,
and their private servers.
"""

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from proofs.harness.checker import STUCK_SECONDS, NotDrained
from proofs.harness.site import Site, site
from refract.clicks.verify import Reconciliation, reconcile
from refract.core.errors import Unavailable
from refract.core.redis import RedisClient
from refract.core.runtime import Runtime
from tools.servers import KINDS, Redis, Server, free_port

SECRET = "a secret that all nodes of this proof share"  # noqa: S105 - of nobody's


@dataclass(slots=True)
class Fleet:
    """Everything that can be broken."""

    database: Server
    redis: Redis
    redirects: list[Site]
    webs: list[Site]
    workers: list[Site]

    @property
    def sites(self) -> dict[str, list[Site]]:
        return {"redirect": self.redirects, "web": self.webs, "worker": self.workers}

    @property
    def all(self) -> list[Site]:
        return [*self.webs, *self.redirects, *self.workers]

    async def start(self) -> None:
        for one in self.all:
            one.start()
        for one in self.all:
            await one.until_serving()

    async def cut_connections(self, rt: Runtime) -> None:
        """Every connection to the database and to Redis breaks at once; both servers stay up."""
        redis = RedisClient(self.redis.url)
        try:
            await redis.execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", seconds=2)
            await redis.execute("CLIENT", "KILL", "TYPE", "pubsub", seconds=2)
        finally:
            await redis.close()
        async with rt.db.read() as session:
            if session.dialect == "postgresql":
                others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
                end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                await session.execute(text(f"{end} {others}"))
                return
            all_others = (
                "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user"
                " <> 'system user'"
            )
            for (number,) in await session.execute(text(all_others)):
                with contextlib.suppress(DBAPIError):  # gone by itself
                    await session.execute(text(f"KILL {int(number)}"))

    async def drained(self, rt: Runtime) -> Reconciliation:
        """Wait until every node's clicks are stored; it may take as long as it moves on."""
        best, moved = -1, time.monotonic()
        while True:
            with contextlib.suppress(Unavailable):
                found = [
                    await reconcile(rt, one.settings().effective_spool_dir) for one in self.all
                ]
                waiting = sum(figures.pending for figures in found)
                if not waiting:
                    return found[0]
                if found[-1].stored > best:
                    best, moved = found[-1].stored, time.monotonic()
                if time.monotonic() > moved + STUCK_SECONDS:
                    raise NotDrained(
                        f"{waiting} clicks wait, and nothing has been stored for"
                        f" {STUCK_SECONDS:g} s"
                    )
            await asyncio.sleep(0.3)


@contextmanager
def private(*names: str) -> Iterator[dict[str, Server]]:
    """Private servers, which the proof may stop and kill."""
    base = Path(tempfile.mkdtemp(prefix="refract-fleet-"))
    base.chmod(0o711)  # the servers are another user
    made: dict[str, Server] = {}
    try:
        for name in names:
            made[name] = KINDS[name](base, free_port())
            made[name].initialise()
            made[name].start()
        yield made
    finally:
        for server in made.values():
            server.discard()
        if not os.environ.get("REFRACT_PROOF_KEEP"):
            shutil.rmtree(base, ignore_errors=True)


@asynccontextmanager
async def fleet(
    home: Path, dialect: str, size: Mapping[str, int], **environment: str
) -> AsyncIterator[Fleet]:
    """So many nodes of each role, not yet started."""
    async with AsyncExitStack() as opened:
        servers = opened.enter_context(private(dialect, "redis"))
        redis = servers["redis"]
        assert isinstance(redis, Redis)
        common = {"REFRACT_REDIS_URL": redis.url, "REFRACT_SECRET_KEY": SECRET, **environment}
        made: dict[str, list[Site]] = {}
        for role, number in size.items():
            made[role] = []
            for index in range(number):
                place = home / f"{role}-{index}"
                place.mkdir()
                one = site(
                    place,
                    dialect,
                    url=servers[dialect].url,
                    **{**common, "REFRACT_ROLE": role},  # type: ignore[arg-type]  # words alone
                )
                made[role].append(await opened.enter_async_context(one))
        yield Fleet(servers[dialect], redis, made["redirect"], made["web"], made["worker"])
