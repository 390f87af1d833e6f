"""PostgreSQL's LISTEN: other processes wake this one without waiting for its next poll."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from refract.core.db.raw_servers import open_detached_connection
from refract.core.db.session import Database

KEEPALIVE_INTERVAL = 30.0
QUERY_TIMEOUT = 5.0
MIN_RETRY_SECONDS = 0.5
MAX_RETRY_SECONDS = 30.0


async def listen_for_notifications(
    db: Database, channel: str, on_notification: Callable[[], None]
) -> None:
    """Call `on_notification` for every notification, until cancelled.

    Also after each new connection, since a notification may have been missed.
    """
    log = structlog.get_logger("refract.listen")
    pause = MIN_RETRY_SECONDS
    while True:
        try:
            await _listen_once(db, channel, on_notification)
            pause = MIN_RETRY_SECONDS
            log.warning("listen_connection_lost", channel=channel)
        except (SQLAlchemyError, OSError, TimeoutError, _get_driver_error(db)) as exc:
            log.warning("listen_failed", channel=channel, reason=str(exc), again_in=pause)
        await asyncio.sleep(pause)
        pause = min(MAX_RETRY_SECONDS, pause * 2)


async def _listen_once(db: Database, channel: str, on_notification: Callable[[], None]) -> None:
    """Listen on one connection until it is lost."""
    connection = await open_detached_connection(db)
    try:
        gone = asyncio.Event()
        connection.add_termination_listener(lambda *_: gone.set())
        await connection.add_listener(channel, lambda *_: on_notification())
        on_notification()
        await _wait_until_lost(connection, gone)
    finally:
        connection.terminate()


def _get_driver_error(db: Database) -> type[Exception]:
    error: type[Exception] = db.engine.dialect.loaded_dbapi.asyncpg.PostgresError
    return error


async def _wait_until_lost(connection: Any, gone: asyncio.Event) -> None:
    """Wait until the connection is lost; a dead peer is detected by a query."""
    while not gone.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(gone.wait(), KEEPALIVE_INTERVAL)
        if not gone.is_set():
            await connection.fetchval("SELECT 1", timeout=QUERY_TIMEOUT)
