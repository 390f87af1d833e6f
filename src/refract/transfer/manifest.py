"""The file format of a backup: members, manifest, and reading them."""

import contextlib
import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from refract import __version__
from refract.clicks.archive.models import ArchiveFile
from refract.core.errors import Conflict, Invalid

FORMAT_VERSION: Final = 1
MANIFEST: Final = "manifest.json"
ARCHIVE_TABLE: Final = ArchiveFile.__tablename__


class NotABackup(Invalid):
    """{path} isn't a backup that this version can read: {reason}."""


class BackupDamaged(Conflict):
    """The backup is damaged: {what} doesn't match its manifest."""


class BackupIncomplete(Conflict):
    """The backup lacks {names}, which are listed as archived clicks.

    Use --without-archive to restore without them.
    """


@dataclass(slots=True)
class BackupManifest:
    """The contents of a backup and their checksums."""

    revision: str
    made_at: str
    dialect: str
    version: str = __version__
    format: int = FORMAT_VERSION
    tables: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    without_archive: bool = False

    @property
    def rows(self) -> int:
        return sum(int(checksum.split(":")[0]) for checksum in self.tables.values())

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form. `without_archive` is left out if false: older versions lack it."""
        names = ("format", "version", "revision", "made_at", "dialect", "tables", "files")
        mark = {"without_archive": True} if self.without_archive else {}
        return {name: getattr(self, name) for name in names} | mark


@contextlib.contextmanager
def open_backup(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except zipfile.BadZipFile as exc:
        raise NotABackup(path=path, reason=str(exc)) from exc
    except OSError as exc:
        raise NotABackup(path=path, reason=exc.strerror or str(exc)) from exc


@contextlib.contextmanager
def open_member(archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    try:
        with archive.open(name) as member:
            yield member
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError) as exc:
        raise BackupDamaged(what=name) from exc


def read_manifest(archive: zipfile.ZipFile, path: Path) -> BackupManifest:
    try:
        fields = json.loads(archive.read(MANIFEST))
        if fields.get("format") != FORMAT_VERSION:
            raise NotABackup(
                path=path, reason=f"its format is {fields.get('format')}, not {FORMAT_VERSION}"
            )
        return BackupManifest(**fields)
    except (KeyError, ValueError, TypeError, AttributeError) as exc:
        raise NotABackup(path=path, reason="it has no manifest, so it is not complete") from exc


def get_table_member(name: str) -> str:
    return f"tables/{name}.jsonl"


def hash_file(source: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while data := source.read(1 << 20):
        digest.update(data)
    return digest.hexdigest()


def find_missing_archives(archive: zipfile.ZipFile, manifest: BackupManifest) -> list[str]:
    """Return the archive files that the backup's own table names and that are not in it."""
    if ARCHIVE_TABLE not in manifest.tables:
        return []
    with open_member(archive, get_table_member(ARCHIVE_TABLE)) as member:
        columns = json.loads(member.readline())
        name, dropped = columns.index("name"), columns.index("dropped_at")
        rows = [json.loads(line) for line in member]
    return [
        row[name]
        for row in rows
        if row[dropped] is None and f"archive/{row[name]}" not in manifest.files
    ]


def summarise_names(names: list[str]) -> str:
    """Return the first few of many names, and how many more there are."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more"
