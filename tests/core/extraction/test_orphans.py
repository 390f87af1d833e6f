"""Extraction processes end when their server is killed, both idle ones and those in mid-task."""

import asyncio
import sys
from pathlib import Path

import pytest

SERVER = """
import asyncio, sys
from types import SimpleNamespace
from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import ExtractionTask
from refract.core.metrics import Metrics

async def main():
    settings = SimpleNamespace(extraction_processes=1)
    pool = ExtractionPool(SimpleNamespace(settings=settings, metrics=Metrics()))
    await pool.run(ExtractionTask("echo", "builtins:bytes", 5, 60.0, 100), b"x", owner="ada")
    (child,) = pool._workers
    print(child._process.pid, flush=True)
    task = ExtractionTask("exec", "builtins:exec", 600, 600.0, 100)
    await pool.run(task, sys.argv[1].encode(), owner="ada")

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "work", ["import time; time.sleep(600)", "while True: pass"], ids=["idle", "busy"]
)
async def test_children_end_with_a_server_that_is_killed(work: str) -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, work, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    pid = int(await server.stdout.readline())

    server.kill()
    await server.wait()

    while _alive(pid):  # noqa: ASYNC110 - another process sets no event
        await asyncio.sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
