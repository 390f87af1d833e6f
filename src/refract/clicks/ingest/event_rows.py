"""Rows of events, as the driver of each database takes them with the least work.

SQLite takes values. PostgreSQL takes a binary COPY, MariaDB a statement with literals: both are
written while clicks are gathered, without an object for each value.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from io import BytesIO
from itertools import chain
from operator import itemgetter
from struct import Struct
from typing import Any, Final, NamedTuple

from refract.clicks.ingest.facts import FACT_COLUMNS
from refract.clicks.rollups.breakdowns import build_breakdown_key
from refract.core.db.bulk import get_driver_connection
from refract.core.db.session import WriteSession
from refract.core.settings.model import Dialect

EVENT_COLUMNS: Final = ("spool_id", "segment", "place", "at", "node", *FACT_COLUMNS)
ROWS_PER_STATEMENT: Final = (500, 50)
"""Rows in a statement on SQLite: as many as fit, in few sizes, so that prepared ones are reused.

SQLite takes 32,766 values in one statement.
"""
MAX_STATEMENT_BYTES: Final = 1 << 19
"""Half of the shortest packet that MariaDB takes unless it is configured otherwise."""

EventRows = list[Any]
"""Values one after the other on SQLite, else bytes of many rows in each item."""

_COLUMN_LIST: Final = ", ".join(EVENT_COLUMNS)
_INSERT: Final = f"INSERT INTO click_events ({_COLUMN_LIST}) VALUES "  # noqa: S608 - our words
_COPY_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_TRAILER: Final = b"\xff\xff"
_NULL_FIELD: Final = b"\xff\xff\xff\xff"
_EPOCH_2000: Final = int(datetime(2000, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
_pack_prefix = Struct(">hiqii").pack
_pack_place = Struct(">iiiq").pack
_pack_facts = Struct(">ihiqi?i?").pack
_pack_id = Struct(">iq").pack
_pack_length = Struct(">i").pack


class RowShape(NamedTuple):
    """What all rows of a batch have in common, as values and as a server takes them."""

    dialect: Dialect
    spool_id: int
    segment: int
    node: str
    prefix: bytes
    """The beginning of each row."""
    node_field: bytes
    node_keys: tuple[str, ...]
    """The breakdown key of the node, if it has a name."""


def build_shape(dialect: Dialect, spool_id: int, segment: int, node: str) -> RowShape:
    keys = (build_breakdown_key("nodes", node),) if node else ()
    name = node.encode()
    prefix, field = b"", b""
    if dialect == "postgresql":
        prefix = _pack_prefix(len(EVENT_COLUMNS), 8, spool_id, 4, segment)
        field = _pack_length(len(name)) + name
    elif dialect == "mysql":
        prefix = b"(%d,%d," % (spool_id, segment)
        # In hexadecimal, which means the same in every SQL mode.
        field = b"_utf8mb4 x'%s'" % name.hex().encode()
    return RowShape(dialect, spool_id, segment, node, prefix, field, keys)


RowAppender = Callable[[EventRows, RowShape, int, int, tuple[Any, ...]], None]
"""Adds a row: `rows`, shape, place of its frame, microseconds, values of `FACT_COLUMNS`."""


def append_values(
    rows: EventRows, shape: RowShape, place: int, at: int, facts: tuple[Any, ...]
) -> None:
    kind, target, bot, private, *rest = facts
    # Numbers instead of booleans, for which SQLite's driver would look for an adapter.
    rows += (
        shape.spool_id, shape.segment, place, _format_time(at), shape.node, kind, target,
        int(bot), int(private), *rest,
    )  # fmt: skip


def append_fields(
    rows: EventRows, shape: RowShape, place: int, at: int, facts: tuple[Any, ...]
) -> None:
    """Add a row of a binary COPY."""
    kind, target, bot, private, network, device, *ids = facts
    rows.append(
        b"".join(
            (
                shape.prefix,
                _pack_place(4, place, 8, at - _EPOCH_2000),
                shape.node_field,
                _pack_facts(2, kind, 8, target, 1, bot, 1, private),
                _build_text_field(network),
                _build_text_field(device),
                *(_NULL_FIELD if value is None else _pack_id(8, value) for value in ids),
            )
        )
    )


def append_literals(
    rows: EventRows, shape: RowShape, place: int, at: int, facts: tuple[Any, ...]
) -> None:
    """Add a row of a statement and a comma. No text of it has characters that need escaping."""
    kind, target, bot, private, network, device, *ids = facts
    address = "NULL" if network is None else f"'{network}'"
    numbers = ",".join("NULL" if value is None else str(value) for value in ids)
    rows.append(
        b"%b%d,'%b',%b,%d,%d,%d,%d,%b),"
        % (
            shape.prefix,
            place,
            _format_time(at).encode(),
            shape.node_field,
            kind,
            target,
            bot,
            private,
            f"{address},'{device}',{numbers}".encode(),
        )
    )


ROW_APPENDERS: Final[dict[Dialect, RowAppender]] = {
    "sqlite": append_values,
    "postgresql": append_fields,
    "mysql": append_literals,
}


async def insert_events(session: WriteSession, rows: EventRows) -> None:
    """Insert events, with few statements."""
    if session.dialect == "sqlite":
        connection = await session.connection()
        for statement, values in _split_values(rows):
            await connection.exec_driver_sql(statement, values)
        return
    driver = await get_driver_connection(session)
    if session.dialect == "postgresql":
        source = BytesIO(b"".join((_COPY_HEADER, *rows, _COPY_TRAILER)))
        await driver.copy_to_table(
            "click_events", source=source, columns=EVENT_COLUMNS, format="binary"
        )
        return
    for part in _split_statements(rows):
        await driver.query(b"".join((_INSERT.encode(), *part)).removesuffix(b","))


def join_by_target(batches: Sequence[EventRows]) -> None:
    """Move the values of all batches to the first one, in the order of their links and lists.

    SQLite then meets each page of its index of them once, instead of once for each click.
    """
    width = len(EVENT_COLUMNS)
    rows = [
        values[begin : begin + width]
        for values in batches
        for begin in range(0, len(values), width)
    ]
    rows.sort(key=itemgetter(EVENT_COLUMNS.index("target_id")))
    for values in batches:
        values.clear()
    batches[0].extend(chain.from_iterable(rows))


def _split_values(rows: EventRows) -> Iterator[tuple[str, tuple[Any, ...]]]:
    width, done = len(EVENT_COLUMNS), 0
    total = len(rows) // width
    while done < total:
        number = next((size for size in ROWS_PER_STATEMENT if size <= total - done), total - done)
        yield _build_insert(number), tuple(rows[done * width : (done + number) * width])
        done += number


@lru_cache(maxsize=64)
def _build_insert(rows: int) -> str:
    marks = f"({', '.join(['?'] * len(EVENT_COLUMNS))})"
    return _INSERT + ", ".join([marks] * rows)


def _split_statements(rows: Sequence[bytes]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for piece in rows:
        if size + len(piece) > MAX_STATEMENT_BYTES and part:
            yield part
            part, size = [], 0
        part.append(piece)
        size += len(piece)
    if part:
        yield part


def _build_text_field(value: str | None) -> bytes:
    if value is None:
        return _NULL_FIELD
    data = value.encode()
    return _pack_length(len(data)) + data


def _format_time(at: int) -> str:
    second, micro = divmod(at, 1_000_000)
    return f"{format_second(second)}.{micro:06}"


@lru_cache(maxsize=1024)
def format_second(second: int) -> str:
    """Return a time as `2026-06-01 12:00:00`."""
    return datetime.fromtimestamp(second, UTC).replace(tzinfo=None).isoformat(" ")
