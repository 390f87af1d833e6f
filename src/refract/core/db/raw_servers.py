"""Readers below the ORM of database servers: a few connections outside the pool."""

import asyncio
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from refract.core.db.engine import CONNECT_TIMEOUT
from refract.core.db.raw import RawReader, RawRow
from refract.core.db.session import Database
from refract.core.errors import StoreUnavailable

_CONNECTION_ERRORS: tuple[type[Exception], ...] = (OSError, EOFError, SQLAlchemyError)


def open_server_reader(db: Database, connections: int) -> RawReader:
    """Open a reader with up to `connections` concurrent queries."""
    kind = PostgresRawReader if db.dialect == "postgresql" else MysqlRawReader
    return kind(db, connections)


class _ServerRawReader:
    """A few connections. After a failure, that connection and all idle ones are dropped."""

    _errors = _CONNECTION_ERRORS

    def __init__(self, db: Database, connections: int) -> None:
        self._db = db
        self._free: list[Any] = []
        self._slots = asyncio.Semaphore(connections)
        self._closed = False

    async def fetch_rows(self, statement: str, *values: object) -> Sequence[RawRow]:
        async with self._slots:
            while self._free:
                connection = self._free.pop()
                try:
                    return await self._query(connection, statement, values)
                except self._errors:
                    # The server may have been restarted: the next connection is a new one.
                    self._drop_free()
            try:
                return await self._query(await self._connect(), statement, values)
            except self._errors as exc:
                raise StoreUnavailable from exc

    async def _query(
        self, connection: Any, statement: str, values: tuple[object, ...]
    ) -> Sequence[RawRow]:
        """Query, and keep the connection for the next one.

        After an error or a cancellation it is in an unknown state and is dropped.
        """
        try:
            found = await self._fetch(connection, statement, values)
        except BaseException:
            self._drop(connection)
            raise
        if self._closed:
            self._drop(connection)
        else:
            self._free.append(connection)
        return found

    async def _connect(self) -> Any:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            return await open_detached_connection(self._db)

    async def _fetch(
        self, connection: Any, statement: str, values: tuple[object, ...]
    ) -> Sequence[RawRow]:
        raise NotImplementedError

    def _drop(self, connection: Any) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        self._closed = True  # a running query is finished, but its connection is not kept
        self._drop_free()

    def _drop_free(self) -> None:
        free, self._free = self._free, []
        for connection in free:
            self._drop(connection)


class PostgresRawReader(_ServerRawReader):
    """asyncpg prepares a statement the first time a connection sees it."""

    def __init__(self, db: Database, connections: int) -> None:
        super().__init__(db, connections)
        adapter = db.engine.dialect.loaded_dbapi
        driver = adapter.asyncpg
        # The third is raised for a connection that was closed underneath the driver, the last by a
        # pool that could not connect.
        self._errors = (
            driver.PostgresError,
            driver.InterfaceError,
            driver.InternalClientError,
            adapter.Error,
            *_CONNECTION_ERRORS,
        )

    async def _fetch(
        self, connection: Any, statement: str, values: tuple[object, ...]
    ) -> Sequence[RawRow]:
        found: Sequence[RawRow] = await connection.fetch(_number_placeholders(statement), *values)
        return found

    def _drop(self, connection: Any) -> None:
        connection.terminate()


class MysqlRawReader(_ServerRawReader):
    """asyncmy writes the values into the statement itself."""

    def __init__(self, db: Database, connections: int) -> None:
        super().__init__(db, connections)
        self._errors = (db.engine.dialect.loaded_dbapi.Error, *_CONNECTION_ERRORS)

    async def _connect(self) -> Any:
        connection = await super()._connect()
        # Each query sees what is committed by then, and none leaves a transaction open.
        await connection.autocommit(True)
        return connection

    async def _fetch(
        self, connection: Any, statement: str, values: tuple[object, ...]
    ) -> Sequence[RawRow]:
        async with connection.cursor() as cursor:
            await cursor.execute(statement.replace("?", "%s"), values)
            found: Sequence[RawRow] = await cursor.fetchall()
            return found

    def _drop(self, connection: Any) -> None:
        connection.close()


async def open_detached_connection(db: Database) -> Any:
    """Open a driver's connection outside the pool, created like all others.

    A connection kept from the pool would make it smaller permanently.
    """
    proxied = await db.engine.raw_connection()
    connection: Any = proxied.driver_connection
    proxied.detach()
    return connection


@lru_cache(maxsize=64)
def _number_placeholders(statement: str) -> str:
    number = count(1)
    return "".join(f"${next(number)}" if character == "?" else character for character in statement)
