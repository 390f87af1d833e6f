"""Archived clicks are read in processes of their own."""

import asyncio
import os
from collections.abc import Generator
from contextlib import aclosing
from typing import Any

import pytest

from refract.clicks.archive import processes
from refract.clicks.archive.processes import ArchiveProcesses, ArchiveReadFailed
from refract.clicks.archive.service import ArchiveFileMissing
from refract.core.runtime import Runtime
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("own_processes")


def count_up(last: int) -> Generator[int, None, None]:
    yield from range(last)


def print_progress() -> str:
    print("50%", flush=True)
    os.write(1, b"100%")
    return "done"


def fail() -> None:
    raise LookupError("nothing there")


async def refuse(name: str) -> None:
    await asyncio.sleep(0)
    raise ArchiveFileMissing(day="2026-05-01", name=name)


async def test_a_process_is_used_again_and_ends_with_the_runtime(rt: Runtime) -> None:
    pool = rt.singleton(ArchiveProcesses)
    async with pool.acquire() as process:
        first = await process.call(os.getpid)
        assert [number async for number in process.iterate(count_up, 3)] == [0, 1, 2]
    async with pool.acquire() as process:
        assert await process.call(os.getpid) == first != os.getpid()
    await rt.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_an_error_is_raised_here_and_the_process_goes_on(rt: Runtime) -> None:
    async with rt.singleton(ArchiveProcesses).acquire() as process:
        pid = await process.call(os.getpid)
        with pytest.raises(ArchiveReadFailed, match="LookupError: nothing there"):
            await process.call(fail)
        assert await process.call(os.getpid) == pid


async def test_what_a_library_prints_is_no_reply(rt: Runtime) -> None:
    async with rt.singleton(ArchiveProcesses).acquire() as process:
        assert await process.call(print_progress) == "done"


async def test_an_error_of_the_product_stays_what_it_is(rt: Runtime) -> None:
    async with rt.singleton(ArchiveProcesses).acquire() as process:
        with pytest.raises(ArchiveFileMissing, match=r"gone\.parquet is missing"):
            await process.run(refuse, "gone.parquet")
        assert await process.call(os.getpid) != os.getpid()


async def test_two_idle_processes_stay_at_most(rt: Runtime) -> None:
    pool = rt.singleton(ArchiveProcesses)
    async with pool.acquire() as first, pool.acquire() as second, pool.acquire() as third:
        used = (first, second, third)
    assert [process.is_alive for process in used] == [False, True, True]
    async with pool.acquire() as process:
        assert process is second  # the last one that became idle


async def test_a_reader_that_leaves_early_takes_its_process_with_it(rt: Runtime) -> None:
    pool = rt.singleton(ArchiveProcesses)
    async with pool.acquire() as process:
        pid = await process.call(os.getpid)
        numbers = process.iterate(count_up, 10_000)
        async with aclosing(numbers):
            assert await anext(numbers) == 0
            output: Any = process._process.stdout
            await eventually(lambda: output._paused)  # full, so that its end is not read either
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    async with pool.acquire() as process:
        assert await process.call(os.getpid) != pid


async def test_a_process_that_dies_is_an_error_and_is_followed(rt: Runtime) -> None:
    pool = rt.singleton(ArchiveProcesses)
    with pytest.raises(ArchiveReadFailed):
        async with pool.acquire() as process:
            await process.call(os.abort)
    async with pool.acquire() as process:
        assert await process.call(os.getpid) != os.getpid()


async def test_an_idle_process_ends(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "IDLE_SECONDS", 0.01)
    async with rt.singleton(ArchiveProcesses).acquire() as process:
        await process.call(os.getpid)
    await eventually(lambda: not process.is_alive)
