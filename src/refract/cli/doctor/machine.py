"""The machine underneath: directories, disk, files that may be open."""

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from refract.analytics.node_metrics import BACKED_UP_ROLES, last_backup
from refract.analytics.spool_reader import Position, has_ingester, pending, spools, what_was_set_aside
from refract.cli.doctor.findings import Finding, mind, well, wrong
from refract.core.settings import Settings

LITTLE = 1 << 30
TOO_LITTLE = 100 << 20
FEW_FILES = 4096
FEW_INODES = 0.03
OLD_SPOOL_BYTES = 256 << 20
OLD_BACKUP_HOURS = 36


def look(settings: Settings) -> list[Finding]:
    found = list(_directory("data directory", settings.data_dir, "REFRACT_DATA_DIR"))
    if settings.role != "worker":
        found += _directory("spool", settings.effective_spool_dir, "REFRACT_SPOOL_DIR")
    if settings.role in BACKED_UP_ROLES:
        found += _archive(settings)
        found += _backup(settings)
    return [*found, *_clicks(settings), *_open_files()]


def _archive(settings: Settings) -> Iterator[Finding]:
    directory = settings.effective_archive_dir
    if settings.archive_dir is not None and not directory.is_dir():
        yield wrong("archive", f"{directory} does not exist.", "Mount or make it, or correct REFRACT_ARCHIVE_DIR.")
        return
    if settings.archive_dir is None and settings.role != "all":
        yield mind(
            "archive",
            f"Archived clicks of this {settings.role} node lie in its own data directory, {directory}.",
            "Set REFRACT_ARCHIVE_DIR to one directory that all web and worker nodes share.",
        )
    yield from _directory("archive", directory, "REFRACT_ARCHIVE_DIR")


def _backup(settings: Settings) -> Iterator[Finding]:
    at = last_backup(settings)
    if not at:
        yield mind("backup", "There has never been one.", "refract backup FILE, every night (docs/how-to/backups.md).")
        return
    hours = (time.time() - at) / 3600
    if hours > OLD_BACKUP_HOURS:
        yield mind("backup", f"The last good one is {hours / 24:.1f} days old.", "Look why: journalctl -u refract-backup.")
    else:
        yield well("backup", f"The last good one is {hours:.0f} hours old.")


def _directory(subject: str, path: Path, variable: str) -> Iterator[Finding]:
    there = next((one for one in (path, *path.absolute().parents) if one.exists()), Path("/"))
    if there.is_file():
        yield wrong(subject, f"{there} is a file, not a directory.", f"Correct {variable}.")
        return
    if not _writable(there):
        yield wrong(subject, f"{there} cannot be written to by this user.", f"Give this user the right to, or correct {variable}.")
        return
    if path.exists() and path.stat().st_mode & 0o077:
        yield mind(subject, f"{path} can be read by others on this machine.", f"chmod 700 {path}")
    inodes = os.statvfs(there)
    if inodes.f_files and inodes.f_favail / inodes.f_files < FEW_INODES:
        yield wrong(subject, f"{there} has {inodes.f_favail:,} of {inodes.f_files:,} inodes left.", "Remove small files.")
        return
    free = shutil.disk_usage(there).free
    sentence = f"{path} has {free / (1 << 30):.1f} GiB of room."
    if free < TOO_LITTLE:
        yield wrong(subject, sentence, "Make room: clicks that find none are not kept, and changes are refused.")
    elif free < LITTLE:
        yield mind(subject, sentence, "Make room before it is full.")
    else:
        yield well(subject, sentence)


def _writable(path: Path) -> bool:
    """Tried, since a right on paper is none on a disk that is read-only."""
    try:
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def _clicks(settings: Settings) -> Iterator[Finding]:
    root = settings.effective_spool_dir
    waiting = sum(pending(spool, Position()).bytes for spool in spools(root))
    serving = has_ingester(root)
    if settings.role == "redirect" and settings.redis_url is None and not serving:
        yield wrong(
            "clicks",
            f"Nobody would store the clicks that this node writes to {root}.",
            "Set REFRACT_REDIS_URL, or start a worker with the same REFRACT_SPOOL_DIR.",
        )
    elif waiting > OLD_SPOOL_BYTES:
        yield mind("clicks", f"{waiting / (1 << 20):.0f} MiB of clicks lie in {root}.", "Look at the log of the process that stores them.")
    else:
        who = "and somebody stores them" if serving else "and no server is running here"
        yield well("clicks", f"{waiting / 1024:.0f} KiB of clicks lie in the spool, {who}.")
    if aside := what_was_set_aside(root):
        yield mind(
            "clicks",
            f"{len(aside)} files hold clicks that could not be read, such as {aside[0]}.",
            "Look at the disk, then: refract verify --acknowledge (docs/how-to/backups.md).",
        )


def _open_files() -> Iterator[Finding]:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < FEW_FILES:
        yield mind(
            "open files",
            f"This user may have {most} files open, and every visitor takes one.",
            "Raise it: LimitNOFILE=65536 in a systemd unit.",
        )
    else:
        yield well("open files", f"{most} may be open.")
