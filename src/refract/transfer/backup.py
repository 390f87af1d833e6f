"""A backup: one file that restores on any of the three databases, on this machine or another.

A ZIP archive of `tables/<name>.jsonl` (a line of column names, then a line per row), the files beside the database, and last of all
`manifest.json`, which says what everything adds up to. The spool is copied before the database is read: what is stored meanwhile is then in
both, and its checkpoint keeps it from being stored again; the other way round it would be in neither.
"""

import contextlib
import hashlib
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

from refract import __version__, migrations
from refract.core.db import Database
from refract.core.errors import ConfigurationError, Conflict, Invalid
from refract.core.settings import Settings
from refract.migrations.tables import metadata
from refract.transfer.rows import Form, Sum, tables
from refract.transfer.store import CHUNK, NotTheSame, add_up, count, empty, filled, go_on_counting, lines, snapshot, write

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
_NOT_COPIED: Final = frozenset({"lock", "ingester.lock"})
Progress = Callable[[str, int, int], None]


class NotABackup(Invalid):
    """{path} is not a backup that this version can read: {reason}."""


class BackupDamaged(Conflict):
    """The backup is damaged: {what} does not add up to what its manifest says."""


class NotEmpty(Conflict):
    """The database holds something already ({table}). Restore into an empty one."""


@dataclass(slots=True)
class Manifest:
    """What is in a backup."""

    revision: str
    made_at: str
    dialect: str
    version: str = __version__
    format: int = FORMAT
    tables: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(int(spelled.split(":")[0]) for spelled in self.tables.values())


def folders(settings: Settings) -> dict[str, Path]:
    """What lies beside the database."""
    return {"spool": settings.effective_spool_dir, "archive": settings.effective_archive_dir}


async def back_up(settings: Settings, db: Database, path: Path, now: datetime, progress: Progress) -> Manifest:
    """Write a backup and read it again; the file appears under its name when it is complete."""
    revision = await migrations.current(db)
    if revision != migrations.head():
        raise ConfigurationError(problem="The database is not at this version's schema.", remedy="Run refract migrate first.")
    manifest = Manifest(revision, now.isoformat(), db.dialect)
    draft = path.with_name(f".{path.name}.part")
    try:
        with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                _copy_files(archive, settings, manifest)
                async with snapshot(db) as connection:
                    for model in tables():
                        form = Form(model)
                        manifest.tables[form.name] = await _dump(
                            archive, form, lines(connection, form), await count(connection, form), progress
                        )
                archive.writestr(MANIFEST, json.dumps(vars_of(manifest), indent=1))
            file.flush()
            os.fsync(file.fileno())
        check(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return manifest


def vars_of(manifest: Manifest) -> dict[str, Any]:
    return {name: getattr(manifest, name) for name in ("format", "version", "revision", "made_at", "dialect", "tables", "files")}


async def _dump(archive: zipfile.ZipFile, form: Form, rows: AsyncIterator[list[bytes]], all_rows: int, progress: Progress) -> str:
    found = Sum()
    progress(form.name, 0, all_rows)
    with archive.open(_member(form.name), "w", force_zip64=True) as member:
        member.write(json.dumps(form.columns).encode() + b"\n")
        async for some in rows:
            member.write(b"".join(line + b"\n" for line in some))
            for line in some:
                found.add(line)
            progress(form.name, found.rows, all_rows)
    return found.spelled


def _copy_files(archive: zipfile.ZipFile, settings: Settings, manifest: Manifest) -> None:
    found = [("secret", settings.data_dir / "secret")]
    for name, folder in folders(settings).items():
        found += [(f"{name}/{path.relative_to(folder)}", path) for path in sorted(folder.rglob("*")) if path.name not in _NOT_COPIED]
    for name, path in found:
        with contextlib.suppress(FileNotFoundError, IsADirectoryError), path.open("rb") as source:  # finished and removed meanwhile
            manifest.files[name] = _copy(source, archive, f"files/{name}")


def _copy(source: IO[bytes], archive: zipfile.ZipFile, member: str) -> str:
    sum_ = hashlib.sha256()
    with archive.open(member, "w", force_zip64=True) as target:
        while data := source.read(1 << 20):
            target.write(data)
            sum_.update(data)
    return sum_.hexdigest()


def _digest(source: IO[bytes]) -> str:
    sum_ = hashlib.sha256()
    while data := source.read(1 << 20):
        sum_.update(data)
    return sum_.hexdigest()


def check(path: Path) -> Manifest:
    """Read everything once: every table and every file must add up to what the manifest says."""
    with _opened(path) as archive:
        manifest = _manifest(archive, path)
        for name, wanted in manifest.tables.items():
            found = Sum()
            with _reading(archive, _member(name)) as member:
                member.readline()
                for line in member:
                    found.add(line.rstrip(b"\n"))
            if found.spelled != wanted:
                raise BackupDamaged(what=f"the table {name}")
        for name, wanted in manifest.files.items():
            with _reading(archive, f"files/{name}") as member:
                if _digest(member) != wanted:
                    raise BackupDamaged(what=f"the file {name}")
    return manifest


async def restore(settings: Settings, db: Database, path: Path, progress: Progress, *, again: bool = False) -> Manifest:
    """Check a backup, write it into an empty database and data directory, and compare."""
    manifest = check(path)
    if manifest.revision > migrations.head():
        raise NotABackup(path=path, reason=f"it was made by the newer version {manifest.version}")
    there = await migrations.current(db)
    if there is None:
        await migrations.upgrade(db, manifest.revision)
    elif there != manifest.revision:
        raise ConfigurationError(
            problem=f"The database is at revision {there}, the backup at {manifest.revision}.", remedy="Restore into an empty database."
        )
    with _opened(path) as archive:
        async with db.engine.connect() as connection:
            if there is not None and not again and (full := await filled(connection)):
                raise NotEmpty(table=full[0])
            await empty_known(connection, manifest)
            for name, wanted in manifest.tables.items():
                await _load(archive, connection, name, wanted, progress)
            await go_on_counting(db, connection)
        await migrations.upgrade(db)
        _put_files(archive, settings, manifest)
    return manifest


async def empty_known(connection: Any, manifest: Manifest) -> None:
    """A backup of an older version knows fewer tables than we do."""
    if set(manifest.tables) == {model.name for model in tables()}:
        await empty(connection)
        return
    for name in reversed(manifest.tables):
        await connection.execute(Form(_model(name)).table.delete())
    await connection.commit()


async def _load(archive: zipfile.ZipFile, connection: Any, name: str, wanted: str, progress: Progress) -> None:
    all_rows, done = int(wanted.split(":", maxsplit=1)[0]), 0
    with _reading(archive, _member(name)) as member:
        form = _form(name, json.loads(member.readline()))
        progress(name, 0, all_rows)
        for some in _chunks(member):
            await write(connection, form, some)
            done += len(some)
            progress(name, done, all_rows)
    found = await add_up(connection, form)
    await connection.rollback()
    if found.spelled != wanted:
        raise NotTheSame(table=name, here=found.spelled, wanted=wanted)


def _form(name: str, columns: list[str]) -> Form:
    model = _model(name)
    unknown = [column for column in columns if column not in model.columns]
    if unknown:
        raise ConfigurationError(
            problem=f"The backup has a column {name}.{unknown[0]} that this version no longer knows.",
            remedy="Restore it with the version that made it.",
        )
    return Form(model, columns)


def _model(name: str) -> Any:
    if name not in metadata.tables:
        raise ConfigurationError(
            problem=f"The backup has a table {name} that this version no longer knows.", remedy="Restore it with the version that made it."
        )
    return metadata.tables[name]


def _chunks(member: IO[bytes]) -> Iterator[list[bytes]]:
    some: list[bytes] = []
    for line in member:
        some.append(line.rstrip(b"\n"))
        if len(some) == CHUNK:
            yield some
            some = []
    yield some


def _put_files(archive: zipfile.ZipFile, settings: Settings, manifest: Manifest) -> None:
    """What is there already stays: a spool that was never removed is newer than its copy."""
    places = folders(settings)
    for name in manifest.files:
        first, _, rest = name.partition("/")
        root = places.get(first, settings.data_dir)
        target = (root / rest if rest else settings.data_dir / first).resolve()
        if not target.is_relative_to(root.resolve()) or target.exists():
            continue
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.part")
        with archive.open(f"files/{name}") as source, os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as sink:
            shutil.copyfileobj(source, sink)
        draft.replace(target)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except zipfile.BadZipFile as error:
        raise NotABackup(path=path, reason=str(error)) from error
    except OSError as error:
        raise NotABackup(path=path, reason=error.strerror or str(error)) from error


@contextlib.contextmanager
def _reading(archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    try:
        with archive.open(name) as member:
            yield member
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise BackupDamaged(what=name) from error


def _manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    try:
        told = json.loads(archive.read(MANIFEST))
        if told.get("format") != FORMAT:
            raise NotABackup(path=path, reason=f"its format is {told.get('format')}, not {FORMAT}")
        return Manifest(**told)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise NotABackup(path=path, reason="it has no manifest, so it is not complete") from error


def _member(name: str) -> str:
    return f"tables/{name}.jsonl"
