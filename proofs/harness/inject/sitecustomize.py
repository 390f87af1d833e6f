"""Faults inside a process under proof, switched by files: Python loads this module by itself when its folder is on PYTHONPATH.

Refract has no switch for any of this. A proof puts the folder on the path of the server it starts and names a directory in
PROOF_FAULTS; while there is a file `feed` in it, reading the feed of changes fails on SQLite, and with `store` everything does.
"""

import os
import sqlite3
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
    connection: sqlite3.Connection = _connect(*arguments, **{"factory": FaultyConnection, **options})
    return connection


if _SWITCHES:
    sqlite3.connect = dbapi2.connect = _faulty_connect  # type: ignore[assignment]
