"""Restoring a backup into an empty database and data directory."""

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sqlalchemy.ext.asyncio import AsyncConnection

from refract import migrations
from refract.core.db.session import Database
from refract.core.errors import ConfigurationError, Conflict
from refract.core.settings.model import Settings
from refract.migrations.tables import metadata
from refract.transfer.backup import EXCLUDED_CREDENTIALS, BackupProgress, verify_backup
from refract.transfer.manifest import (
    BackupManifest,
    NotABackup,
    get_table_member,
    open_backup,
    open_member,
)
from refract.transfer.row_format import TableCodec, list_tables
from refract.transfer.table_io import (
    BATCH_SIZE,
    CopyMismatch,
    advance_sequences,
    compute_checksum,
    empty_tables,
    list_filled_tables,
    write_lines,
)


class DatabaseNotEmpty(Conflict):
    """The database isn't empty ({table}). Restore into an empty one."""


async def load_backup(
    settings: Settings,
    db: Database,
    path: Path,
    progress: BackupProgress,
    *,
    again: bool = False,
    without_archive: bool = False,
) -> BackupManifest:
    """Verify a backup, write it into an empty database and data directory, and compare.

    The database stays marked as unusable until `finish_restore`.
    """
    manifest = verify_backup(path, without_archive=without_archive)
    if manifest.revision > migrations.get_head():
        raise NotABackup(path=path, reason=f"it was made by the newer version {manifest.version}")
    state = await migrations.check_schema(db)
    revision, may_empty = state.revision, again or state.is_restoring
    if revision is None:
        await migrations.upgrade(db, manifest.revision)
    elif revision != manifest.revision:
        raise ConfigurationError(
            problem=f"The database is at revision {revision}, the backup at {manifest.revision}.",
            remedy="Restore into an empty database.",
        )
    with open_backup(path) as archive:
        async with db.engine.connect() as connection:
            if (
                revision is not None
                and not may_empty
                and (filled := await list_filled_tables(connection))
            ):
                raise DatabaseNotEmpty(table=filled[0])
            await migrations.mark_restore(connection, manifest.revision, is_finished=False)
            await empty_known_tables(connection, manifest)
            for name, expected in manifest.tables.items():
                if name in EXCLUDED_CREDENTIALS:
                    continue  # from a backup of a version that included them
                await _load_table(archive, connection, name, expected, progress)
            await advance_sequences(db, connection)
            await _upgrade(db, connection, manifest.revision)
        _restore_files(archive, settings, manifest)
    return manifest


async def finish_restore(db: Database) -> None:
    """Remove the mark that keeps a restored database from being used."""
    async with db.engine.connect() as connection:
        await migrations.mark_restore(connection, migrations.HEAD, is_finished=True)
    await db.update_statistics()


async def _upgrade(db: Database, connection: AsyncConnection, revision: str) -> None:
    """Migrate the restored schema. The mark is removed meanwhile, since Alembic rejects it."""
    if revision != migrations.HEAD:
        await migrations.mark_restore(connection, revision, is_finished=True)
        await migrations.upgrade(db)
        await migrations.mark_restore(connection, migrations.HEAD, is_finished=False)


async def empty_known_tables(connection: Any, manifest: BackupManifest) -> None:
    """Empty the tables of the backup; one of an older version has fewer than this one."""
    if set(manifest.tables) >= {model.name for model in list_tables(EXCLUDED_CREDENTIALS)}:
        await empty_tables(connection)
        return
    for name in reversed(manifest.tables):
        await connection.execute(TableCodec(_get_table(name)).table.delete())
    await connection.commit()


async def _load_table(
    archive: zipfile.ZipFile, connection: Any, name: str, expected: str, progress: BackupProgress
) -> None:
    all_rows, done = int(expected.split(":", maxsplit=1)[0]), 0
    with open_member(archive, get_table_member(name)) as member:
        codec = _build_codec(name, json.loads(member.readline()))
        progress(name, 0, all_rows)
        for batch in _read_batches(member):
            await write_lines(connection, codec, batch)
            done += len(batch)
            progress(name, done, all_rows)
    checksum = await compute_checksum(connection, codec)
    await connection.rollback()
    if checksum.text != expected:
        raise CopyMismatch(table=name, here=checksum.text, wanted=expected)


def _build_codec(name: str, columns: list[str]) -> TableCodec:
    model = _get_table(name)
    unknown = [column for column in columns if column not in model.columns]
    if unknown:
        raise ConfigurationError(
            problem=(
                f"The backup has a column {name}.{unknown[0]} that this version no longer knows."
            ),
            remedy="Restore it with the version that made it.",
        )
    return TableCodec(model, columns)


def _get_table(name: str) -> Any:
    if name not in metadata.tables:
        raise ConfigurationError(
            problem=f"The backup has a table {name} that this version no longer knows.",
            remedy="Restore it with the version that made it.",
        )
    return metadata.tables[name]


def _read_batches(member: IO[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for line in member:
        batch.append(line.rstrip(b"\n"))
        if len(batch) == BATCH_SIZE:
            yield batch
            batch = []
    yield batch


def _restore_files(archive: zipfile.ZipFile, settings: Settings, manifest: BackupManifest) -> None:
    """Write the files of a backup. Existing files stay: a spool in place is newer than its copy."""
    roots = {"spool": settings.effective_spool_dir, "archive": settings.effective_archive_dir}
    for name in manifest.files:
        first, _, rest = name.partition("/")
        root = roots.get(first, settings.data_dir)
        target = (root / rest if rest else settings.data_dir / first).resolve()
        if not target.is_relative_to(root.resolve()) or target.exists():
            continue
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.part")
        with (
            archive.open(f"files/{name}") as source,
            os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as sink,
        ):
            shutil.copyfileobj(source, sink)
        draft.replace(target)
