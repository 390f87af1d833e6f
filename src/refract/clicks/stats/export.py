"""Export of single clicks as CSV or Parquet, from the archive and the database."""

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

from refract.clicks.archive.parquet import COLUMN_TYPES, build_scan, open_connection, quote_path
from refract.clicks.archive.processes import ArchiveProcesses
from refract.clicks.archive.service import EXPORT_PREFIX, ensure_directory
from refract.clicks.stats.errors import TooManyExports
from refract.clicks.stats.events import (
    EventRow,
    EventWindow,
    build_query,
    iter_events,
    iter_windows,
    require_archive_files,
)
from refract.core.clock import format_utc
from refract.core.runtime import Runtime
from refract.core.text import escape_formula
from refract.core.threads import WorkThreadPool
from refract.identity import audit

MAX_EXPORTS: Final = 4
CHUNK_BYTES: Final = 256 * 1024
EXPORT_FIELDS: Final = (
    "at", "event_id", "link_id", "bot", "private", "node", "device", "browser", "browser_version",
    "system", "system_version", "referrer_host", "referrer", "utm_source", "utm_medium",
    "utm_campaign", "utm_term", "utm_content", "domain", "language", "rule", "country_code",
    "country", "city", "latitude", "longitude", "network", "user_agent",
)  # fmt: skip
"""The columns of an export, in order."""
_COLUMN_INDEXES: Final = {name: place for place, name in enumerate(COLUMN_TYPES)}
_EVENT_ID: Final = "printf('%016x-%d-%d', spool_id, segment, place)"
_SELECT_LIST: Final = ", ".join(
    {"event_id": f"{_EVENT_ID} AS event_id", "link_id": "target_id AS link_id"}.get(
        name, f'"{name}"'
    )
    for name in EXPORT_FIELDS
)


class ClickExportFormat(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"

    @property
    def media_type(self) -> str:
        return (
            "text/csv; charset=utf-8"
            if self is ClickExportFormat.CSV
            else "application/vnd.apache.parquet"
        )


class ExportSlots:
    """Counts the exports of this process: each may take a core and some memory."""

    def __init__(self, _rt: Runtime) -> None:
        self.running = 0

    @contextmanager
    def acquire(self) -> Iterator[None]:
        if self.running >= MAX_EXPORTS:
            raise TooManyExports
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1


async def stream_export(
    rt: Runtime,
    link_id: int,
    form: ClickExportFormat,
    begin: datetime,
    end: datetime,
    *,
    by: int | None,
) -> AsyncGenerator[bytes, None]:
    """Yield the file in chunks: every click of the link in [begin, end) in order of time.

    Bots are included. `by` is the user who exports.
    """
    with rt.singleton(ExportSlots).acquire():
        # Before the first byte: a file that ends early looks complete.
        await require_archive_files(rt, begin, end)
        await audit.record_export(rt, "clicks", by=by, target=link_id)
        pieces = (
            _stream_csv(rt, link_id, begin, end)
            if form is ClickExportFormat.CSV
            else _stream_parquet(rt, link_id, begin, end)
        )
        async for piece in pieces:
            yield piece


async def _stream_csv(
    rt: Runtime, link_id: int, begin: datetime, end: datetime
) -> AsyncIterator[bytes]:
    yield _encode_csv([EXPORT_FIELDS])
    threads = rt.singleton(WorkThreadPool)
    async for events in iter_events(rt, link_id, begin, end):
        yield await threads.run(_encode_csv, map(_format_row, events))


def _format_row(event: EventRow) -> Sequence[str]:
    known = {name: event[place] for name, place in _COLUMN_INDEXES.items()}
    known["event_id"] = format_event_id(event)
    known["link_id"] = known["target_id"]
    return [_format_cell(known[name]) for name in EXPORT_FIELDS]


def format_event_id(event: EventRow) -> str:
    """Return the event's id: the place of its frame in the spool, which never changes."""
    spool, segment, place = (
        event[_COLUMN_INDEXES[name]] for name in ("spool_id", "segment", "place")
    )
    return f"{spool:016x}-{segment}-{place}"


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return format_utc(value, timespec="microseconds")
    return escape_formula(value) if isinstance(value, str) else str(value)


def _encode_csv(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


async def _stream_parquet(
    rt: Runtime, link_id: int, begin: datetime, end: datetime
) -> AsyncIterator[bytes]:
    """Yield a Parquet file.

    Its index is at the end, so it is complete on disk before the first byte.
    """
    directory = ensure_directory(rt)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=EXPORT_PREFIX, dir=directory))
    try:
        parts: list[str] = []
        whole = folder / "whole.parquet"
        async with rt.singleton(ArchiveProcesses).acquire() as process:
            async for window in iter_windows(rt, link_id, begin, end):
                parts.append(f"{len(parts):06d}.parquet")
                await process.call(_write_part, directory, folder / parts[-1], window)
            await process.call(_merge_parts, folder, whole, parts)
        with await asyncio.to_thread(whole.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield piece
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _write_part(directory: Path, path: Path, window: EventWindow) -> None:
    with open_connection(directory) as connection:
        query, values = build_query(directory, window, connection)
        connection.execute(
            f"COPY (SELECT {_SELECT_LIST} FROM ({query}))"  # noqa: S608
            f" TO {quote_path(path)} (FORMAT parquet)",
            values,
        )


def _merge_parts(folder: Path, path: Path, parts: Sequence[str]) -> None:
    """Merge all parts; without any, write a file with columns and no rows."""
    with open_connection(folder) as connection:
        if parts:
            query = f"SELECT * FROM {build_scan(folder, parts)}"  # noqa: S608
        else:
            nothing = EventWindow(0, datetime.min, datetime.min, [], [])  # noqa: DTZ901
            source, _ = build_query(folder, nothing, connection)
            query = f"SELECT {_SELECT_LIST} FROM ({source})"  # noqa: S608
        connection.execute(
            f"COPY ({query}) TO {quote_path(path)} (FORMAT parquet, COMPRESSION zstd)"
        )
