"""Faults inside a process under proof, switched by files.

Python loads this module by itself when its folder is on PYTHONPATH.

Refract has no switch for any of this. A proof puts the folder on the path of the server it starts
and names a directory in PROOF_FAULTS; while there is a file `feed` in it, reading the feed of
changes fails on SQLite, and with `store` everything does. With PROOF_CALLBACKS the server runs on
Python's own event loop, and every callback that uses over 10 ms of CPU is a line in that file.
"""

import asyncio
import gc
import os
import sqlite3
import time
from sqlite3 import dbapi2
from typing import Any

_SWITCHES = os.environ.get("PROOF_FAULTS")
_connect: Any = sqlite3.connect


def _strike(statement: str) -> None:
    feed = "FROM link_feed" in statement and statement.lstrip().startswith("SELECT")
    if _on("store") or (feed and _on("feed")):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error


def _on(switch: str) -> bool:
    return os.path.exists(f"{_SWITCHES}/{switch}")  # noqa: PTH110 - asked at every statement


class FaultyCursor(sqlite3.Cursor):
    def execute(self, sql: str, *values: Any) -> Any:
        _strike(sql)
        return super().execute(sql, *values)


class FaultyConnection(sqlite3.Connection):
    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        _strike(sql)
        return super().execute(sql, *values)

    def cursor(self, *_: Any) -> sqlite3.Cursor:  # type: ignore[override]
        return super().cursor(FaultyCursor)


def _faulty_connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = _connect(
        *arguments, **{"factory": FaultyConnection, **options}
    )
    return connection


_CALLBACKS = os.environ.get("PROOF_CALLBACKS")
LONG_CALLBACK_SECONDS = 0.01
GARBAGE = "garbage collection"
_run_handle: Any = asyncio.Handle._run  # noqa: SLF001 - the one place that every callback passes


def _timed_run(handle: Any) -> None:
    task = getattr(handle._callback, "__self__", None)  # noqa: SLF001 - of a cancelled handle, None
    request = _request_of(task) if isinstance(task, asyncio.Task) else ""
    _collector.used = 0.0
    began = time.thread_time()
    _run_handle(handle)
    used = time.thread_time() - began
    if _collector.used > LONG_CALLBACK_SECONDS:
        _note(_collector.used, GARBAGE)
    used -= _collector.used
    if used > LONG_CALLBACK_SECONDS:
        what = (
            _coroutines(task) if isinstance(task, asyncio.Task) else repr(handle).replace("\n", " ")
        )
        _note(used, f"{request}{what}")


def _note(seconds: float, what: str) -> None:
    with open(str(_CALLBACKS), "a") as file:  # noqa: PTH123 - as early and as plain as can be
        file.write(f"{seconds:.6f} {what}\n")


class _Collector:
    """The CPU time that garbage collections took inside the callback under way.

    Chance decides which one they meet.
    """

    def __init__(self) -> None:
        self.used = 0.0
        self._began = 0.0

    def __call__(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.used += time.thread_time() - self._began


_collector = _Collector()


def _request_of(task: Any) -> str:
    """Return method and path of the request that a task of the server answers."""
    frame = getattr(task.get_coro(), "cr_frame", None)
    scope = getattr(frame.f_locals.get("self"), "scope", None) if frame is not None else None
    return (
        f"{scope['method']} {scope['path'][:60]} · "
        if isinstance(scope, dict) and "path" in scope
        else ""
    )


def _coroutines(task: Any) -> str:
    """Return the coroutines that a task is in, from the outermost to where it waits now."""
    names = []
    waiting: Any = task.get_coro()
    while waiting is not None and hasattr(waiting, "__qualname__"):
        frame = getattr(waiting, "cr_frame", None)
        names.append(
            f"{waiting.__qualname__}:{frame.f_lineno}"
            if frame is not None
            else waiting.__qualname__
        )
        waiting = getattr(waiting, "cr_await", None)
    return " > ".join(names[:1] + names[-4:] if len(names) > 5 else names)


def _probe_callbacks() -> None:
    import uvloop  # noqa: PLC0415 - only where it is replaced

    gc.callbacks.append(_collector)

    for module in (asyncio, asyncio.tasks):  # tasks in Python tell which coroutine they run
        setattr(module, "Task", vars(asyncio.tasks)["_PyTask"])  # noqa: B010 - the same

    setattr(uvloop, "run", asyncio.run)  # noqa: B010 - its type is another
    setattr(asyncio.Handle, "_run", _timed_run)  # noqa: B010 - the same


if _CALLBACKS:
    _probe_callbacks()
if _SWITCHES:
    sqlite3.connect = dbapi2.connect = _faulty_connect  # type: ignore[assignment]
