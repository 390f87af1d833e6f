"""Single clicks as a file: CSV, line by line, or Parquet. What is old comes from the archive, what is new from the database."""

import asyncio
import csv
import io
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from refract.analytics.archive import EXPORTS, directory_of
from refract.analytics.columns import COLUMNS, opened, source_of, text_of
from refract.analytics.stats.errors import TooManyExports
from refract.analytics.stats.raw import Event, Window, demand_archive, events, query_of, windows
from refract.core.cells import defused
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreads
from refract.identity import audit

AT_ONCE: Final = 4
PIECE: Final = 256 * 1024
FIELDS: Final = (
    "at", "event_id", "link_id", "bot", "private", "node", "device", "browser", "browser_version", "system", "system_version",
    "referrer_host", "referrer", "utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content",
    "country_code", "country", "city", "latitude", "longitude", "network", "user_agent",
)  # fmt: skip
"""What a row of an export has, in this order."""
_PLACES: Final = {name: place for place, name in enumerate(COLUMNS)}
_EVENT_ID: Final = "printf('%016x-%d-%d', spool_id, segment, place)"
_SELECTED: Final = ", ".join(
    {"event_id": f"{_EVENT_ID} AS event_id", "link_id": "target_id AS link_id"}.get(name, f'"{name}"') for name in FIELDS
)


class Form(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"

    @property
    def media_type(self) -> str:
        return "text/csv; charset=utf-8" if self is Form.CSV else "application/vnd.apache.parquet"


class Exports:
    """How many are being written in this process: each may take a core and some memory."""

    def __init__(self, _rt: Runtime) -> None:
        self.running = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        if self.running >= AT_ONCE:
            raise TooManyExports
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1


async def export(rt: Runtime, link_id: int, form: Form, begin: datetime, end: datetime, *, by: int | None) -> AsyncGenerator[bytes, None]:
    """The file, piece by piece; every click of the link in [begin, end), bots too, in order of time. `by` is the user who asks."""
    with rt.part(Exports).one():
        await demand_archive(rt, begin, end)  # before the first byte: a file that ends early looks like a whole one
        await audit.note_export(rt, "clicks", by=by, target=link_id)
        pieces = _csv(rt, link_id, begin, end) if form is Form.CSV else _parquet(rt, link_id, begin, end)
        async for piece in pieces:
            yield piece


async def _csv(rt: Runtime, link_id: int, begin: datetime, end: datetime) -> AsyncIterator[bytes]:
    yield _lines([FIELDS])
    threads = rt.part(WorkThreads)
    async for some in events(rt, link_id, begin, end):
        yield await threads.run(_lines, map(_cells, some))


def _cells(event: Event) -> Sequence[str]:
    known = {name: event[place] for name, place in _PLACES.items()}
    known["event_id"] = event_id(event)
    known["link_id"] = known["target_id"]
    return [_cell(known[name]) for name in FIELDS]


def event_id(event: Event) -> str:
    """Where its frame lay in the spool: the same for an event wherever it is now."""
    spool, segment, place = (event[_PLACES[name]] for name in ("spool_id", "segment", "place"))
    return f"{spool:016x}-{segment}-{place}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return defused(value) if isinstance(value, str) else str(value)


def _lines(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


async def _parquet(rt: Runtime, link_id: int, begin: datetime, end: datetime) -> AsyncIterator[bytes]:
    """A column file ends with its table of contents, so it is complete on disk before its first byte leaves."""
    directory = directory_of(rt)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=EXPORTS, dir=directory))
    try:
        parts: list[str] = []
        async for window in windows(rt, link_id, begin, end):
            parts.append(f"{len(parts):06d}.parquet")
            await asyncio.to_thread(_part, directory, folder / parts[-1], window)
        whole = folder / "whole.parquet"
        await asyncio.to_thread(_whole, folder, whole, parts)
        with await asyncio.to_thread(whole.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _part(directory: Path, path: Path, window: Window) -> None:
    with opened(directory) as connection:
        query, values = query_of(directory, window, connection)
        connection.execute(f"COPY (SELECT {_SELECTED} FROM ({query})) TO {text_of(path)} (FORMAT parquet)", values)  # noqa: S608


def _whole(folder: Path, path: Path, parts: Sequence[str]) -> None:
    """All parts in one; with none of them, a file with columns and no rows."""
    with opened(folder) as connection:
        if parts:
            query = f"SELECT * FROM {source_of(folder, parts)}"  # noqa: S608
        else:
            nothing = Window(0, datetime.min, datetime.min, [], [])  # noqa: DTZ901
            query = f"SELECT {_SELECTED} FROM ({query_of(folder, nothing, connection)[0]})"  # noqa: S608
        connection.execute(f"COPY ({query}) TO {text_of(path)} (FORMAT parquet, COMPRESSION zstd)")
