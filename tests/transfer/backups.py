"""Backups that are written and restored without a terminal."""

from datetime import UTC, datetime
from pathlib import Path

from refract.core.db.session import Database
from refract.core.settings.model import Settings
from refract.transfer.manifest import BackupManifest
from refract.transfer.restore import finish_restore, load_backup

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def silent(_table: str, _done: int, _all: int) -> None:
    """Show no progress."""


async def restore_backup(
    settings: Settings,
    db: Database,
    path: Path,
    *,
    again: bool = False,
    without_archive: bool = False,
) -> BackupManifest:
    """Restore a backup and make the database usable, without revocations to repeat."""
    manifest = await load_backup(
        settings, db, path, silent, again=again, without_archive=without_archive
    )
    await finish_restore(db)
    return manifest
