"""A table for traces, a runtime on the machine's clock, and worker processes."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from refract.core.db.session import Database
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.model import Settings
from refract.jobs.models import Job
from tests.jobs.work import metadata
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]


async def jobs(rt: Runtime) -> list[Job]:
    async with rt.db.read() as session:
        return list(await session.scalars(select(Job).order_by(Job.id)))


@pytest.fixture
async def traced(settings: Settings) -> AsyncIterator[Settings]:
    """Settings of a database that has the table of traces."""
    settings.data_dir.mkdir(mode=0o700, exist_ok=True)
    db = Database(settings)
    await _run(db.engine, "create_all")
    await db.close()
    yield settings
    db = Database(settings)
    await _run(db.engine, "drop_all")
    await db.close()


async def _run(engine: AsyncEngine, what: str) -> None:
    async with engine.begin() as connection:
        await connection.run_sync(getattr(metadata, what))


@pytest.fixture
async def real(traced: Settings) -> AsyncIterator[Runtime]:
    """A runtime on the machine's clock, like that of the processes."""
    async with open_runtime(traced) as rt:
        yield rt


class Child:
    """A worker process and its output."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.pid = process.pid

    async def says(self, prefix: str) -> str:
        """Return the next line that begins like this."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while line := (await self.process.stdout.readline()).decode():
                if line.startswith(prefix):
                    return line.strip()
        raise AssertionError(f"the worker ended without saying {prefix!r}")

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


Spawn = Callable[..., Awaitable[Child]]


@pytest.fixture
async def spawn(traced: Settings) -> AsyncIterator[Spawn]:
    """Start a worker process, and wait until it is ready."""
    children: list[Child] = []

    async def start(*, lease: float = 60, poll: float = 0.2, concurrency: int = 4) -> Child:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        numbers = [str(lease), str(poll), str(concurrency)]
        arguments = [traced.effective_database_url, str(traced.data_dir), *numbers]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.jobs.child",
            *arguments,
            cwd=ROOT,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
        )
        children.append(child := Child(process))
        await child.says("ready")
        return child

    yield start
    for child in children:
        if child.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.send(signal.SIGCONT)
                child.send(signal.SIGKILL)
            await child.process.wait()
