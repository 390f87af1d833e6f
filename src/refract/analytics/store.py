"""Many rows at once, as each database likes it best."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Insert, Table, func
from sqlalchemy.dialects import mysql, postgresql, sqlite

from refract.analytics.frames import LINK_CLICK
from refract.analytics.models import ClickEvent, ListTotals
from refract.core.db import WriteSession
from refract.core.types import Model
from refract.links.models import LinkTotals

_EVENTS = [column.name for column in ClickEvent.__table__.columns]
Row = dict[str, Any]


async def insert_unless_there(session: WriteSession, model: type[Model], rows: Sequence[Row]) -> None:
    """Insert rows whose primary key is new; leave the others as they are."""
    await session.execute(_skipping(session, model), list(rows))


def _skipping(session: WriteSession, model: type[Model]) -> Insert:
    if session.dialect == "postgresql":
        return postgresql.insert(model).on_conflict_do_nothing()
    if session.dialect == "sqlite":
        return sqlite.insert(model).on_conflict_do_nothing()
    first = next(iter(model.__table__.primary_key.columns)).name  # type: ignore[attr-defined]
    upsert = mysql.insert(model)
    return upsert.on_duplicate_key_update({first: upsert.inserted[first]})


async def insert_events(session: WriteSession, rows: Sequence[Row]) -> None:
    """A batch of events: COPY on PostgreSQL, one prepared statement for all rows elsewhere."""
    connection = await session.connection()
    if session.dialect == "postgresql":
        raw = await connection.get_raw_connection()
        driver = raw.driver_connection
        assert driver is not None  # noqa: S101 - a connection in use has one
        await driver.copy_records_to_table("click_events", records=[tuple(row[name] for name in _EVENTS) for row in rows], columns=_EVENTS)
        return
    mark = "?" if session.dialect == "sqlite" else "%s"
    statement = f"INSERT INTO click_events ({', '.join(f'{name}' for name in _EVENTS)}) VALUES ({', '.join([mark] * len(_EVENTS))})"  # noqa: S608 - our own column names
    text_moments = session.dialect == "sqlite"
    await connection.exec_driver_sql(statement, [tuple(_plain(row[name], text=text_moments) for name in _EVENTS) for row in rows])


def _plain(value: Any, *, text: bool) -> Any:
    """A value as the driver wants it: moments without their zone, which is UTC."""
    if not isinstance(value, datetime):
        return value
    naive = value.replace(tzinfo=None)
    return naive.isoformat(" ", "microseconds") if text else naive


async def add_totals(session: WriteSession, rows: Sequence[Row]) -> None:
    """Add a batch to the totals of its links, lists and entries, in id order so that two writers cannot wait for each other."""
    links = _sums([row for row in rows if row["kind"] == LINK_CLICK], "link_id")
    lists = _sums([row for row in rows if row["kind"] != LINK_CLICK], "target_id")
    if links:
        await session.execute(_adding(session, LinkTotals), links)
    if lists:
        await session.execute(_adding(session, ListTotals), lists)


def _sums(rows: Sequence[Row], key: str) -> list[Row]:
    sums: dict[int, Row] = {}
    for row in rows:
        fresh = {key: row["target_id"], "total_clicks": 0, "bot_clicks": 0, "last_clicked_at": row["at"]}
        total = sums.setdefault(row["target_id"], fresh)
        total["bot_clicks" if row["bot"] else "total_clicks"] += 1
        total["last_clicked_at"] = max(total["last_clicked_at"], row["at"])
    return [sums[target] for target in sorted(sums)]


def _adding(session: WriteSession, model: type[Model]) -> Insert:
    table: Table = model.__table__  # type: ignore[assignment]
    if session.dialect == "mysql":
        upsert = mysql.insert(table)
        new = upsert.inserted
        return upsert.on_duplicate_key_update(
            total_clicks=table.c.total_clicks + new.total_clicks,
            bot_clicks=table.c.bot_clicks + new.bot_clicks,
            last_clicked_at=func.greatest(func.coalesce(table.c.last_clicked_at, new.last_clicked_at), new.last_clicked_at),
        )
    greatest = func.greatest if session.dialect == "postgresql" else func.max
    insert = postgresql.insert(table) if session.dialect == "postgresql" else sqlite.insert(table)
    new = insert.excluded
    return insert.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_={
            "total_clicks": table.c.total_clicks + new.total_clicks,
            "bot_clicks": table.c.bot_clicks + new.bot_clicks,
            "last_clicked_at": greatest(func.coalesce(table.c.last_clicked_at, new.last_clicked_at), new.last_clicked_at),
        },
    )
