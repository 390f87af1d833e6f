"""Backups: one file that restores on any of the three databases, on this machine or another.

A ZIP archive of `tables/<name>.jsonl` (a line of column names, then a line per row), the files
beside the database, and last of all `manifest.json` with the checksums of everything.

The spool is copied before the database is read: clicks stored meanwhile are then in both, and the
checkpoint keeps them from being stored again; in the opposite order they would be in neither.
Archived clicks are copied by the table that lists them, in the same snapshot: a listed file that is
missing fails the backup.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from refract import migrations
from refract.clicks.archive.models import ArchiveFile
from refract.core.db.session import Database
from refract.core.errors import ConfigurationError, Conflict
from refract.core.settings.model import Settings
from refract.identity.revocation_log import get_log_path
from refract.transfer.manifest import (
    MANIFEST,
    BackupDamaged,
    BackupIncomplete,
    BackupManifest,
    find_missing_archives,
    get_table_member,
    hash_file,
    open_backup,
    open_member,
    read_manifest,
    summarise_names,
)
from refract.transfer.row_format import TableChecksum, TableCodec, list_tables
from refract.transfer.table_io import count_rows, open_snapshot, read_lines

EXCLUDED_CREDENTIALS: Final = frozenset({"sessions", "signin_links", "account_invitations"})
"""Credentials that are neither backed up nor restored: everyone signs in again."""
_EXCLUDED_FILES: Final = frozenset({"lock", "ingester.lock"})
_DRAFT_SUFFIX: Final = ".refract-part"
BackupProgress = Callable[[str, int, int], None]


class ArchiveIncomplete(Conflict):
    """Nothing was written:

    {path} lacks {names}, which are listed as archived clicks. Set REFRACT_ARCHIVE_DIR to the
    workers' directory, or use --without-archive.
    """


async def create_backup(
    settings: Settings,
    db: Database,
    path: Path,
    now: datetime,
    progress: BackupProgress,
    *,
    without_archive: bool = False,
) -> BackupManifest:
    """Write a backup and verify it; the file gets its name once it is complete."""
    state = await migrations.check_schema(db)
    if state.problem is not None:
        raise state.problem
    if state.revision is None or state.is_ahead:
        raise ConfigurationError(
            problem=(
                f"This database was upgraded by a newer Refract, to revision {state.revision}; this"
                f" one knows {migrations.HEAD}."
            ),
            remedy="Make the backup with the newer version, which knows everything in it.",
        )
    manifest = BackupManifest(
        state.revision, now.isoformat(), db.dialect, without_archive=without_archive
    )
    with _open_draft(path) as (draft, file):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            _copy_files(archive, _list_data_files(settings), manifest)
            async with open_snapshot(db) as connection:
                if not without_archive:
                    _copy_files(archive, await _list_archived_files(connection, settings), manifest)
                for model in list_tables(EXCLUDED_CREDENTIALS):
                    codec = TableCodec(model)
                    manifest.tables[codec.name] = await _dump_table(
                        archive,
                        codec,
                        read_lines(connection, codec),
                        await count_rows(connection, codec),
                        progress,
                    )
            archive.writestr(MANIFEST, json.dumps(manifest.as_json(), indent=1))
        file.flush()
        os.fsync(file.fileno())
        verify_backup(draft)
        draft.replace(path)
    return manifest


def mark_backup(settings: Settings, path: Path) -> None:
    """Record that a verified backup was made just now."""
    marker = settings.backup_marker
    marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    marker.write_text(f"{path.absolute()}\n")


@contextlib.contextmanager
def _open_draft(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Open the unfinished file, locked while its writer lives.

    Files that killed writers left in the same directory are removed.
    """
    for old in (*path.parent.glob(f".*{_DRAFT_SUFFIX}"), *path.parent.glob(".refract-*.zip.part")):
        with contextlib.suppress(FileNotFoundError, BlockingIOError), old.open("rb") as left:
            fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            old.unlink()
    draft = path.with_name(f".{path.name}{_DRAFT_SUFFIX}")
    try:
        with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield draft, file
    finally:
        draft.unlink(missing_ok=True)


async def _dump_table(
    archive: zipfile.ZipFile,
    codec: TableCodec,
    rows: AsyncIterator[list[bytes]],
    all_rows: int,
    progress: BackupProgress,
) -> str:
    checksum = TableChecksum()
    progress(codec.name, 0, all_rows)
    with archive.open(get_table_member(codec.name), "w", force_zip64=True) as member:
        member.write(json.dumps(codec.columns).encode() + b"\n")
        async for batch in rows:
            member.write(b"".join(line + b"\n" for line in batch))
            for line in batch:
                checksum.add(line)
            progress(codec.name, checksum.rows, all_rows)
    return checksum.text


def _list_data_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    yield "secret", settings.data_dir / "secret"
    yield f"archive/{get_log_path(settings).name}", get_log_path(settings)
    spool = settings.effective_spool_dir
    for path in sorted(spool.rglob("*")):
        if path.name not in _EXCLUDED_FILES:
            yield f"spool/{path.relative_to(spool)}", path


async def _list_archived_files(
    connection: AsyncConnection, settings: Settings
) -> list[tuple[str, Path]]:
    directory = settings.effective_archive_dir
    query = (
        select(ArchiveFile.name)
        .where(ArchiveFile.dropped_at.is_(None))
        .order_by(ArchiveFile.day, ArchiveFile.part)
    )
    names = list((await connection.execute(query)).scalars())
    if missing := [name for name in names if not (directory / name).is_file()]:
        raise ArchiveIncomplete(path=directory, names=summarise_names(missing))
    return [(f"archive/{name}", directory / name) for name in names]


def _copy_files(
    archive: zipfile.ZipFile, files: Iterable[tuple[str, Path]], manifest: BackupManifest
) -> None:
    for name, path in files:
        with (
            contextlib.suppress(FileNotFoundError, IsADirectoryError),
            path.open("rb") as source,
        ):  # a spool segment was processed and removed
            checksum = hashlib.sha256()  # of what was copied: the spool grows
            with archive.open(f"files/{name}", "w", force_zip64=True) as target:
                while data := source.read(1 << 20):
                    target.write(data)
                    checksum.update(data)
            manifest.files[name] = checksum.hexdigest()


def verify_backup(path: Path, *, without_archive: bool = False) -> BackupManifest:
    """Check all checksums, and that every archived day is included. Return the manifest."""
    with open_backup(path) as archive:
        manifest = read_manifest(archive, path)
        for name, expected in manifest.tables.items():
            checksum = TableChecksum()
            with open_member(archive, get_table_member(name)) as member:
                member.readline()
                for line in member:
                    checksum.add(line.rstrip(b"\n"))
            if checksum.text != expected:
                raise BackupDamaged(what=f"the table {name}")
        for name, expected in manifest.files.items():
            with open_member(archive, f"files/{name}") as member:
                if hash_file(member) != expected:
                    raise BackupDamaged(what=f"the file {name}")
        if not (without_archive or manifest.without_archive) and (
            missing := find_missing_archives(archive, manifest)
        ):
            raise BackupIncomplete(names=summarise_names(missing))
    return manifest
