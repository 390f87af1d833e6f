"""PostgreSQL's LISTEN: other processes wake this one without waiting for its next poll."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from refract.core.db import Database
from refract.core.direct import detached

CHECK_SECONDS = 30.0
ANSWER_SECONDS = 5.0
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0


async def listen(db: Database, channel: str, heard: Callable[[], None]) -> None:
    """Call `heard` for every notification, and after each new connection, since one may have been missed. Runs until cancelled."""
    log = structlog.get_logger("refract.listen")
    pause = FIRST_PAUSE
    while True:
        try:
            await _attend(db, channel, heard)
            pause = FIRST_PAUSE
            log.warning("listen_connection_lost", channel=channel)
        except (SQLAlchemyError, OSError, TimeoutError, _driver_error(db)) as error:
            log.warning("listen_failed", channel=channel, reason=str(error), again_in=pause)
        await asyncio.sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 2)


async def _attend(db: Database, channel: str, heard: Callable[[], None]) -> None:
    """Listen on one connection until it is gone."""
    connection = await detached(db)
    try:
        gone = asyncio.Event()
        connection.add_termination_listener(lambda *_: gone.set())
        await connection.add_listener(channel, lambda *_: heard())
        heard()
        await _until_gone(connection, gone)
    finally:
        connection.terminate()


def _driver_error(db: Database) -> type[Exception]:
    error: type[Exception] = db.engine.dialect.loaded_dbapi.asyncpg.PostgresError
    return error


async def _until_gone(connection: Any, gone: asyncio.Event) -> None:
    """A peer that vanished without a word is found by asking."""
    while not gone.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(gone.wait(), CHECK_SECONDS)
        if not gone.is_set():
            await connection.fetchval("SELECT 1", timeout=ANSWER_SECONDS)
