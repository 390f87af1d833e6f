"""A backup is complete, verified when written and read, and restores on every database."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from sqlalchemy import insert

from proofs.harness.filling import Filler, fill_archive, sums
from refract import migrations
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.spool.format import LINK_CLICK, encode_frame
from refract.clicks.spool.writer import SpoolWriter
from refract.clicks.verify import reconcile as figures
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.links.models import FeedEntry
from refract.migrations.tables import metadata
from refract.transfer.backup import EXCLUDED_CREDENTIALS, create_backup, verify_backup
from refract.transfer.manifest import BackupDamaged, NotABackup
from refract.transfer.restore import DatabaseNotEmpty
from tests.transfer.backups import NOW, restore_backup, silent

one_database = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


async def test_every_table_comes_back_as_it_was(
    full: Runtime, elsewhere: tuple[Settings, Database], tmp_path: Path
) -> None:
    before = await sums(full.db, EXCLUDED_CREDENTIALS)
    file = tmp_path / "backup.zip"
    manifest = await create_backup(full.settings, full.db, file, NOW, silent)
    assert manifest.tables == before
    assert file.stat().st_mode & 0o077 == 0

    settings, db = elsewhere
    await restore_backup(settings, db, file)
    assert await sums(db, EXCLUDED_CREDENTIALS) == before


async def test_a_backup_of_sqlite_restores_on_every_database(
    rt: Runtime, elsewhere: tuple[Settings, Database], tmp_path: Path
) -> None:
    settings, db = elsewhere
    await migrations.upgrade(db)
    await Filler(db).fill()
    await fill_archive(db, settings.effective_archive_dir)
    file = tmp_path / "backup.zip"
    manifest = await create_backup(settings, db, file, NOW, silent)

    await restore_backup(rt.settings, rt.db, file)
    assert await sums(rt.db, EXCLUDED_CREDENTIALS) == manifest.tables
    async with rt.db.write() as session:  # and it goes on numbering behind what came
        await session.execute(insert(FeedEntry).values(at=NOW, target_id=1, version=1, names=[]))
    with pytest.raises(DatabaseNotEmpty):
        await restore_backup(rt.settings, rt.db, file)
    await restore_backup(rt.settings, rt.db, file, again=True)
    assert await sums(rt.db, EXCLUDED_CREDENTIALS) == manifest.tables


@one_database
async def test_clicks_in_the_spool_survive_and_are_counted_once(
    rt: Runtime, elsewhere: tuple[Settings, Database], tmp_path: Path
) -> None:
    spool = SpoolWriter(rt.settings.effective_spool_dir, node="here")
    click = encode_frame(
        LINK_CLICK, 42, rt.clock.now_ns(), 0, b"\x0a\x00\x00", b"Mozilla/5.0", b"", b""
    )
    spool.append([click] * 5)
    await Ingester(rt).apply_all()
    spool.append([click] * 3)
    (rt.settings.data_dir / "secret").write_text("s" * 40)
    file = tmp_path / "backup.zip"
    await create_backup(rt.settings, rt.db, file, NOW, silent)
    spool.close()

    settings, db = elsewhere
    await restore_backup(settings, db, file)
    other = Runtime(settings=settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)
    assert await Ingester(other).apply_all() == 3
    found = await figures(other)
    assert (found.stored, found.pending, found.drift) == (8, 0, [])
    assert (settings.data_dir / "secret").read_text() == "s" * 40


@one_database
async def test_salts_and_sessions_are_left_out(full: Runtime, tmp_path: Path) -> None:
    file = tmp_path / "backup.zip"
    manifest = await create_backup(full.settings, full.db, file, NOW, silent)

    assert set(metadata.tables) - set(manifest.tables) == {
        "visitor_salts",
        "sessions",
        "signin_links",
        "account_invitations",
    }
    with zipfile.ZipFile(file) as archive:
        assert not [name for name in archive.namelist() if "salt" in name]


@one_database
@pytest.mark.parametrize(
    "harm", ["cut", "changed", "swapped", "without manifest", "no zip", "absent"]
)
async def test_a_damaged_backup_is_not_restored(full: Runtime, tmp_path: Path, harm: str) -> None:
    file = tmp_path / "backup.zip"
    await create_backup(full.settings, full.db, file, NOW, silent)
    match harm:
        case "cut":
            file.write_bytes(file.read_bytes()[:-100])
        case "changed":
            with zipfile.ZipFile(file) as archive:
                member = archive.getinfo("tables/users.jsonl")
            data = bytearray(file.read_bytes())
            data[member.header_offset + 60 + member.compress_size // 2] ^= 0xFF
            file.write_bytes(data)
        case "swapped":
            rewrite(
                file,
                lambda name, data: (
                    data.replace(b"2026-06-01", b"2026-06-02")
                    if name == "tables/users.jsonl"
                    else data
                ),
            )
        case "without manifest":
            rewrite(file, lambda name, data: None if name == "manifest.json" else data)
        case "no zip":
            file.write_text("hello")
        case "absent":
            file.unlink()

    with pytest.raises((BackupDamaged, NotABackup)):
        verify_backup(file)


def rewrite(file: Path, change: object) -> None:
    copy = file.with_suffix(".copy")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))  # type: ignore[operator]
            if data is not None:
                new.writestr(name, data)
    shutil.move(copy, file)


@one_database
async def test_a_file_never_leaves_its_folder(
    full: Runtime, elsewhere: tuple[Settings, Database], tmp_path: Path
) -> None:
    file = tmp_path / "backup.zip"
    await create_backup(full.settings, full.db, file, NOW, silent)
    evil = "spool/../../../evil"
    sum_ = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"  # of "hello\n"

    def add(name: str, data: bytes) -> bytes:
        if name != "manifest.json":
            return data
        told = json.loads(data)
        return json.dumps(told | {"files": told["files"] | {evil: sum_}}).encode()

    rewrite(file, add)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(f"files/{evil}", "hello\n")
    settings, db = elsewhere
    await restore_backup(settings, db, file)

    assert not list(tmp_path.rglob("evil"))  # noqa: ASYNC240 - a look at a few files


@one_database
async def test_a_backup_of_a_newer_version_says_so(
    full: Runtime, elsewhere: tuple[Settings, Database], tmp_path: Path
) -> None:
    file = tmp_path / "backup.zip"
    await create_backup(full.settings, full.db, file, NOW, silent)
    rewrite(
        file,
        lambda name, data: (
            json.dumps(json.loads(data) | {"revision": "9999"}).encode()
            if name == "manifest.json"
            else data
        ),
    )

    settings, db = elsewhere
    with pytest.raises(NotABackup, match="newer version"):
        await restore_backup(settings, db, file)
