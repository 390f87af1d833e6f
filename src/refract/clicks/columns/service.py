"""Building of the tables of archived clicks, ahead of the first request that needs them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from refract.clicks.archive.parquet import get_table_name
from refract.clicks.archive.processes import ArchiveProcesses
from refract.clicks.archive.service import ensure_directory, list_names
from refract.core.runtime import Runtime


async def build_missing_tables(rt: Runtime) -> int:
    """Build the tables of all Parquet files that have none; return their number."""
    async with rt.db.read() as session:
        names = await list_names(session)
    directory = ensure_directory(rt)
    missing = await asyncio.to_thread(_list_missing, directory, names)
    if missing:
        async with rt.singleton(ArchiveProcesses).acquire() as process:
            for name in missing:
                await process.call(_build_table, directory, name)
    return len(missing)


def _list_missing(directory: Path, names: Sequence[str]) -> list[str]:
    return [
        name
        for name in names
        if (directory / name).exists() and not (directory / get_table_name(name)).exists()
    ]


def _build_table(directory: Path, name: str) -> None:
    from refract.clicks.columns.files import write_table  # noqa: PLC0415 - heavy: loads numpy

    write_table(directory, name)
