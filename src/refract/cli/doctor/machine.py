"""The machine underneath: directories, disk, files that may be open."""

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from refract.cli.doctor.findings import DoctorFinding, report_error, report_ok, report_warning
from refract.clicks.spool.reader import (
    SpoolPosition,
    count_pending,
    has_ingester,
    list_quarantined,
    list_spools,
)
from refract.core.settings.model import Settings
from refract.server.metrics import BACKED_UP_ROLES, get_last_backup

LOW_FREE_BYTES = 1 << 30
MIN_FREE_BYTES = 100 << 20
MIN_OPEN_FILES = 4096
MIN_FREE_INODE_SHARE = 0.03
MAX_SPOOL_BYTES = 256 << 20
MAX_BACKUP_AGE_HOURS = 36


def check_machine(settings: Settings) -> list[DoctorFinding]:
    found = list(_check_directory("data directory", settings.data_dir, "REFRACT_DATA_DIR"))
    if settings.role != "worker":
        found += _check_directory("spool", settings.effective_spool_dir, "REFRACT_SPOOL_DIR")
    if settings.role in BACKED_UP_ROLES:
        found += _check_archive(settings)
        found += _check_backup(settings)
    return [*found, *_check_clicks(settings), *_check_open_files()]


def _check_archive(settings: Settings) -> Iterator[DoctorFinding]:
    directory = settings.effective_archive_dir
    if settings.archive_dir is not None and not directory.is_dir():
        yield report_error(
            "archive",
            f"{directory} does not exist.",
            "Mount or make it, or correct REFRACT_ARCHIVE_DIR.",
        )
        return
    if settings.archive_dir is None and settings.role != "all":
        yield report_warning(
            "archive",
            f"Archived clicks of this {settings.role} node lie in its own data directory,"
            f" {directory}.",
            "Set REFRACT_ARCHIVE_DIR to one directory that all web and worker nodes share.",
        )
    yield from _check_directory("archive", directory, "REFRACT_ARCHIVE_DIR")


def _check_backup(settings: Settings) -> Iterator[DoctorFinding]:
    at = get_last_backup(settings)
    if not at:
        yield report_warning(
            "backup",
            "There has never been one.",
            "refract backup FILE, every night (docs/how-to/backups.md).",
        )
        return
    hours = (time.time() - at) / 3600
    if hours > MAX_BACKUP_AGE_HOURS:
        yield report_warning(
            "backup",
            f"The last good one is {hours / 24:.1f} days old.",
            "Look why: journalctl -u refract-backup.",
        )
    else:
        yield report_ok("backup", f"The last good one is {hours:.0f} hours old.")


def _check_directory(subject: str, path: Path, variable: str) -> Iterator[DoctorFinding]:
    there = next((one for one in (path, *path.absolute().parents) if one.exists()), Path("/"))
    if there.is_file():
        yield report_error(subject, f"{there} is a file, not a directory.", f"Correct {variable}.")
        return
    if not _is_writable(there):
        yield report_error(
            subject,
            f"{there} cannot be written to by this user.",
            f"Give this user the right to, or correct {variable}.",
        )
        return
    if path.exists() and path.stat().st_mode & 0o077:
        yield report_warning(
            subject, f"{path} can be read by others on this machine.", f"chmod 700 {path}"
        )
    inodes = os.statvfs(there)
    if inodes.f_files and inodes.f_favail / inodes.f_files < MIN_FREE_INODE_SHARE:
        yield report_error(
            subject,
            f"{there} has {inodes.f_favail:,} of {inodes.f_files:,} inodes left.",
            "Remove small files.",
        )
        return
    free = shutil.disk_usage(there).free
    sentence = f"{path} has {free / (1 << 30):.1f} GiB of room."
    if free < MIN_FREE_BYTES:
        yield report_error(
            subject,
            sentence,
            "Make room: clicks that find none are not kept, and changes are refused.",
        )
    elif free < LOW_FREE_BYTES:
        yield report_warning(subject, sentence, "Make room before it is full.")
    else:
        yield report_ok(subject, sentence)


def _is_writable(path: Path) -> bool:
    """Tried, since a right on paper is none on a disk that is read-only."""
    try:
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def _check_clicks(settings: Settings) -> Iterator[DoctorFinding]:
    root = settings.effective_spool_dir
    waiting = sum(count_pending(spool, SpoolPosition()).bytes for spool in list_spools(root))
    serving = has_ingester(root)
    if settings.role == "redirect" and settings.redis_url is None and not serving:
        yield report_error(
            "clicks",
            f"Nobody would store the clicks that this node writes to {root}.",
            "Set REFRACT_REDIS_URL, or start a worker with the same REFRACT_SPOOL_DIR.",
        )
    elif waiting > MAX_SPOOL_BYTES:
        yield report_warning(
            "clicks",
            f"{waiting / (1 << 20):.0f} MiB of clicks lie in {root}.",
            "Look at the log of the process that stores them.",
        )
    else:
        who = "and somebody stores them" if serving else "and no server is running here"
        yield report_ok("clicks", f"{waiting / 1024:.0f} KiB of clicks lie in the spool, {who}.")
    if aside := list_quarantined(root):
        yield report_warning(
            "clicks",
            f"{len(aside)} files hold clicks that could not be read, such as {aside[0]}.",
            "Look at the disk, then: refract verify --acknowledge (docs/how-to/backups.md).",
        )


def _check_open_files() -> Iterator[DoctorFinding]:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < MIN_OPEN_FILES:
        yield report_warning(
            "open files",
            f"This user may have {most} files open, and every visitor takes one.",
            "Raise it: LimitNOFILE=65536 in a systemd unit.",
        )
    else:
        yield report_ok("open files", f"{most} may be open.")
