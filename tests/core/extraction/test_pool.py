"""Extraction processes: their limits, bounded results, and a server that survives any task."""

import asyncio
import os
import signal
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import (
    MAX_CHUNK_BYTES,
    ExtractionCrashed,
    ExtractionError,
    ExtractionTask,
    ExtractionTimeout,
    OutputTooLarge,
    TaskFailed,
)
from refract.core.runtime import Runtime
from tests.client import on_sqlite
from tests.waiting import eventually

pytestmark = [on_sqlite, pytest.mark.usefixtures("own_processes")]
MEBIBYTE = 1024 * 1024
ECHO = ExtractionTask(
    "echo", "builtins:bytes", cpu_seconds=5, wall_seconds=60.0, max_output=4 * MEBIBYTE
)
INFLATE = replace(ECHO, kind="inflate", function="zlib:decompress")
EXEC = replace(ECHO, kind="exec", function="builtins:exec", cpu_seconds=60, slow=True)
ENDLESS = b"while True: pass"
FLOOD = replace(ECHO, kind="flood", function="itertools:repeat")


def compress_zeros(mebibytes: int) -> bytes:
    """Return what `zlib.compress` makes of so many zeros, which takes it seconds and the memory."""
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    piece = deflate.compress(bytes(MEBIBYTE)) + deflate.flush(zlib.Z_FULL_FLUSH)
    checksum = (mebibytes * MEBIBYTE % 65_521 << 16) + 1  # Adler-32 of zeros
    return b"\x78\x9c" + piece * mebibytes + deflate.flush() + checksum.to_bytes(4, "big")


@pytest.fixture
def pool(rt: Runtime) -> ExtractionPool:
    return rt.singleton(ExtractionPool)


def pids(pool: ExtractionPool) -> set[int]:
    return {child._process.pid for child in pool._workers}


def samples(rt: Runtime, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in rt.metrics.registry.collect()
        for sample in family.samples
        if sample.name == name
    }


async def test_results_come_back_in_bounded_pieces(pool: ExtractionPool) -> None:
    body = os.urandom(3 * MAX_CHUNK_BYTES + 1)

    pieces = await pool.run(ECHO, body, owner="ada")

    assert b"".join(pieces) == body
    assert max(map(len, pieces)) <= MAX_CHUNK_BYTES


async def test_what_fits_into_memory_is_inflated(pool: ExtractionPool) -> None:
    pieces = await pool.run(INFLATE, compress_zeros(3), owner="ada")

    assert b"".join(pieces) == bytes(3 * MEBIBYTE)


async def test_one_process_is_started_when_needed_and_kept(pool: ExtractionPool) -> None:
    assert pids(pool) == set()
    await pool.run(ECHO, b"a", owner="ada")
    first = pids(pool)
    await pool.run(ECHO, b"b", owner="bob")

    assert len(first) == 1
    assert pids(pool) == first


async def test_an_idle_process_ends_and_the_next_task_gets_another(
    pool: ExtractionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refract.core.extraction.pool.IDLE_SECONDS", 0.05)
    await pool.run(ECHO, b"one", owner="ada")
    (first,) = pids(pool)

    await eventually(lambda: not pids(pool))
    with pytest.raises(ProcessLookupError):
        await eventually(lambda: os.kill(first, 0))

    monkeypatch.setattr("refract.core.extraction.pool.IDLE_SECONDS", 60.0)
    assert await pool.run(ECHO, b"two", owner="ada") == [b"two"]
    second = pids(pool)
    assert await pool.run(ECHO, b"three", owner="ada") == [b"three"]
    assert pids(pool) == second


@pytest.mark.parametrize(
    ("task", "body", "ending"),
    [
        (
            replace(EXEC, cpu_seconds=1),
            ENDLESS,
            ExtractionCrashed,
        ),  # the kernel ends it for its CPU time
        (replace(ECHO, kind="late", wall_seconds=0.0), b"", ExtractionTimeout),
        (replace(ECHO, kind="long", max_output=100), b"x" * 101, OutputTooLarge),
        (FLOOD, b"x" * 1000, OutputTooLarge),
        (INFLATE, compress_zeros(1100), TaskFailed),  # MemoryError
        (INFLATE, b"no zlib", TaskFailed),
        (replace(ECHO, kind="unknown", function="refract.nowhere:nothing"), b"", TaskFailed),
    ],
    ids=["cpu", "wall", "output", "flood", "memory", "error", "unknown"],
)
async def test_a_task_that_goes_wrong_ends_alone(
    rt: Runtime,
    pool: ExtractionPool,
    task: ExtractionTask,
    body: bytes,
    ending: type[ExtractionError],
) -> None:
    with pytest.raises(ending):
        await pool.run(task, body, owner="eve")

    assert await pool.run(ECHO, b"next", owner="ada") == [b"next"]
    assert samples(rt, "refract_extraction_tasks_total") == {
        (task.kind, ending.outcome): 1.0,
        ("echo", "done"): 1.0,
    }


async def test_a_killed_process_is_replaced(pool: ExtractionPool) -> None:
    await pool.run(ECHO, b"a", owner="ada")
    (first,) = pids(pool)
    os.kill(first, signal.SIGKILL)  # as the kernel does when memory runs out

    with suppress(ExtractionCrashed):  # if the server has not noticed yet
        await pool.run(ECHO, b"b", owner="ada")

    assert await pool.run(ECHO, b"c", owner="ada") == [b"c"]
    assert first not in pids(pool)


async def test_a_cancelled_task_takes_its_process_along_and_no_result_is_mixed_up(
    pool: ExtractionPool,
) -> None:
    running = asyncio.create_task(pool.run(EXEC, ENDLESS, owner="eve"))
    await eventually(lambda: bool(pids(pool)))
    (first,) = pids(pool)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert await pool.run(ECHO, b"mine", owner="ada") == [b"mine"]
    assert first not in pids(pool)


async def test_quick_tasks_pass_by_a_slow_one(rt: Runtime, pool: ExtractionPool) -> None:
    slow = [
        asyncio.create_task(pool.run(EXEC, ENDLESS, owner=f"eve{number}")) for number in range(3)
    ]
    await eventually(lambda: bool(pids(pool)))

    assert await pool.run(ECHO, b"quick", owner="ada") == [b"quick"]
    assert samples(rt, "refract_extraction_waiting") == {(): 2.0}
    assert len(pids(pool)) == 2
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    assert samples(rt, "refract_extraction_waiting") == {(): 0.0}


async def test_children_know_nothing_of_the_server(
    pool: ExtractionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFRACT_SECRET_KEY", "s" * 40)
    await pool.run(ECHO, b"a", owner="ada")
    (pid,) = pids(pool)

    assert _environment(pid) == {b"PYTHONPATH", b"PATH", b"LANG"}
    assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)
    assert _oom_score(pid) == "1000"


def _oom_score(pid: int) -> str:
    return Path(f"/proc/{pid}/oom_score_adj").read_text().strip()


def _environment(pid: int) -> set[bytes]:
    return {
        entry.split(b"=")[0]
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if entry
    }
