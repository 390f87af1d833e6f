"""Archived clicks belong to a backup.

Operations finding 2.4: `refract backup` reported "Wrote 26,359 rows", exit 0, although the table
listed 83 files that did not exist, and `restore --check` reported no problem. Every click older
than seven days was silently missing.
"""

import fcntl
import os
import time
import zipfile
from pathlib import Path

import pytest
from sqlalchemy import select

from refract.clicks.archive.models import ArchiveFile
from refract.core.runtime import Runtime
from refract.transfer.backup import ArchiveIncomplete, create_backup, mark_backup, verify_backup
from refract.transfer.manifest import BackupIncomplete
from tests.serving import refract
from tests.transfer.backups import NOW, restore_backup, silent
from tests.transfer.test_backup import one_database, rewrite


def leftovers(directory: Path) -> list[str]:
    return sorted(
        path.name
        for path in directory.iterdir()
        if path.is_file() and not path.name.startswith("refract.db")
    )


async def archived_names(rt: Runtime) -> list[str]:
    async with rt.db.read() as session:
        return sorted(
            await session.scalars(select(ArchiveFile.name).where(ArchiveFile.dropped_at.is_(None)))
        )


async def test_a_backup_without_its_archive_fails_and_names_the_files(
    full: Runtime, tmp_path: Path
) -> None:
    file = tmp_path / "backup.zip"
    lost = (await archived_names(full))[0]
    (full.settings.effective_archive_dir / lost).unlink()

    with pytest.raises(ArchiveIncomplete) as refused:
        await create_backup(full.settings, full.db, file, NOW, silent)
    assert lost in refused.value.message
    assert "REFRACT_ARCHIVE_DIR" in refused.value.message
    assert leftovers(tmp_path) == []

    manifest = await create_backup(full.settings, full.db, file, NOW, silent, without_archive=True)
    assert manifest.without_archive
    assert verify_backup(file).without_archive
    assert not [name for name in manifest.files if name.startswith("archive/2")]


async def test_the_archive_comes_back(
    full: Runtime,
    elsewhere: tuple,  # type: ignore[type-arg]
    tmp_path: Path,
) -> None:
    file = tmp_path / "backup.zip"
    await create_backup(full.settings, full.db, file, NOW, silent)
    settings, db = elsewhere

    await restore_backup(settings, db, file)
    for name in await archived_names(full):
        assert (settings.effective_archive_dir / name).read_text() == f"clicks of {name}"


@one_database
async def test_a_backup_that_lacks_an_archived_file_is_not_whole(
    full: Runtime,
    elsewhere: tuple,  # type: ignore[type-arg]
    tmp_path: Path,
) -> None:
    """One that an older version wrote: its manifest adds up and does not know of the files."""
    file = tmp_path / "backup.zip"
    await create_backup(full.settings, full.db, file, NOW, silent, without_archive=True)
    rewrite(
        file,
        lambda name, data: (
            data.replace(b'"without_archive": true', b'"without_archive": false')
            if "manifest" in name
            else data
        ),
    )
    settings, db = elsewhere

    with pytest.raises(BackupIncomplete, match="lacks"):
        verify_backup(file)
    with pytest.raises(BackupIncomplete):
        await restore_backup(settings, db, file)
    await restore_backup(settings, db, file, without_archive=True)


@one_database
async def test_a_killed_backup_is_swept_by_the_next_and_a_living_one_is_not(
    full: Runtime, tmp_path: Path
) -> None:
    dead, older = tmp_path / ".refract-1.zip.refract-part", tmp_path / ".refract-0.zip.part"
    alive = tmp_path / ".refract-2.zip.refract-part"
    for path in (dead, older, alive):
        path.write_text("half")
    with alive.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        await create_backup(full.settings, full.db, tmp_path / "backup.zip", NOW, silent)

    assert leftovers(tmp_path) == [alive.name, "backup.zip"]


@one_database
async def test_a_backup_leaves_its_time_behind(full: Runtime, tmp_path: Path) -> None:
    marker = full.settings.backup_marker
    assert not marker.exists()
    mark_backup(full.settings, tmp_path / "backup.zip")

    assert abs(marker.stat().st_mtime - time.time()) < 3600
    assert os.fspath(tmp_path / "backup.zip") in marker.read_text()


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert refract("migrate", "--data-dir", str(data)).returncode == 0
    done = refract("backup", str(tmp_path / "b.zip"), "--data-dir", str(data))
    assert done.returncode == 0, done.stderr
    assert (data / "archive/last-backup").is_file()
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert "tables/sessions.jsonl" not in archive.namelist()
    whole = refract(
        "restore", str(tmp_path / "b.zip"), "--check", "--data-dir", str(tmp_path / "other")
    )
    assert "is complete" in whole.stdout
    back = refract("restore", str(tmp_path / "b.zip"), "--data-dir", str(tmp_path / "other"))
    assert back.returncode == 0, back.stderr
    assert "0 keys revoked" in back.stdout
