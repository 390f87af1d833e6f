"""Processes that outlive a test: those that read foreign pages, and those that count old clicks.

Loading parsers or DuckDB takes longer than most tests. An idle process of a runtime that closes
goes to the next one that needs one, on the event loop that tests share (`tests.lasting`). Tests of
the processes themselves use the fixture `own_processes`.
"""

import asyncio
from typing import Any

import pytest

from refract.clicks.archive.processes import ArchiveProcess, ArchiveProcesses
from refract.core.extraction.pool import ExtractionPool
from tests.clicks.stores import close_stores
from tests.lasting import get_loop

MAX_KEPT = 2
_extracting: list[Any] = []
_counting: list[ArchiveProcess] = []
_start_extracting, _close_extracting = ExtractionPool._start_worker, ExtractionPool.close
_start_counting, _close_counting = ArchiveProcesses._start, ArchiveProcesses.close


def _is_shared() -> bool:
    return asyncio.get_running_loop() is get_loop()


async def _take_or_start_extracting(pool: ExtractionPool) -> Any:
    while _is_shared() and _extracting:
        process = _extracting.pop()
        if process.is_alive:
            process.tasks = 0
            pool._workers.add(process)
            return process
    return await _start_extracting(pool)


async def _keep_extracting(pool: ExtractionPool) -> None:
    while _is_shared() and len(_extracting) < MAX_KEPT:
        process = pool._take_idle()
        if process is None:
            break
        pool._workers.discard(process)
        _extracting.append(process)
    await _close_extracting(pool)


async def _take_or_start_counting(processes: ArchiveProcesses) -> ArchiveProcess:
    while _is_shared() and _counting:
        process = _counting.pop()
        if process.is_alive:
            processes._all.add(process)
            return process
    return await _start_counting(processes)


async def _keep_counting(processes: ArchiveProcesses) -> None:
    while _is_shared() and len(_counting) < MAX_KEPT:
        process = await processes._take_idle()
        if process is None:
            break
        await process.run(close_stores)
        processes._all.discard(process)
        _counting.append(process)
    await _close_counting(processes)


def share_processes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ExtractionPool, "_start_worker", _take_or_start_extracting)
    patch.setattr(ExtractionPool, "close", _keep_extracting)
    patch.setattr(ArchiveProcesses, "_start", _take_or_start_counting)
    patch.setattr(ArchiveProcesses, "close", _keep_counting)


@pytest.fixture
def own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start and end processes as the product does."""
    monkeypatch.setattr(ExtractionPool, "_start_worker", _start_extracting)
    monkeypatch.setattr(ExtractionPool, "close", _close_extracting)
    monkeypatch.setattr(ArchiveProcesses, "_start", _start_counting)
    monkeypatch.setattr(ArchiveProcesses, "close", _close_counting)


async def end_processes() -> None:
    """End all that were kept, at the end of this process."""
    for process in _extracting:
        await process.kill()
    for process in _counting:
        await process.close()
