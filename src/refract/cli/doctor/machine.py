"""Checks of the machine: directories, disk space, open files."""

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from refract.cli.doctor.findings import (
    DoctorFinding,
    FindingStatus,
    report_error,
    report_ok,
    report_warning,
)
from refract.clicks import compiled as ingest
from refract.clicks.spool.reader import (
    SpoolPosition,
    count_pending,
    has_ingester,
    list_quarantined,
    list_spools,
)
from refract.core.settings.model import Settings
from refract.core.text import count_noun
from refract.redirect import lane
from refract.server.metrics import BACKED_UP_ROLES, get_last_backup

LOW_FREE_BYTES = 1 << 30
MIN_FREE_BYTES = 100 << 20
MIN_OPEN_FILES = 4096
MIN_FREE_INODE_SHARE = 0.03
MAX_SPOOL_BYTES = 256 << 20
MAX_BACKUP_AGE_HOURS = 36


def check_machine(settings: Settings) -> list[DoctorFinding]:
    found = list(_check_directory("data directory", settings.data_dir, "REFRACT_DATA_DIR"))
    if not settings.data_dir.exists() and found[-1].status is FindingStatus.OK:
        found = [report_warning("data directory", found[-1].message, "refract serve creates it.")]
    if settings.role != "worker":
        found += _check_directory("spool", settings.effective_spool_dir, "REFRACT_SPOOL_DIR")
    if settings.role != "worker":
        found += _check_compiled()
    if settings.role in BACKED_UP_ROLES:
        found += _check_archive(settings)
        found += _check_backup(settings)
    return [*found, *_check_clicks(settings), *_check_open_files()]


def _check_archive(settings: Settings) -> Iterator[DoctorFinding]:
    directory = settings.effective_archive_dir
    if settings.archive_dir is not None and not directory.is_dir():
        yield report_error(
            "archive",
            f"{directory} doesn't exist.",
            "Mount or create it, or correct REFRACT_ARCHIVE_DIR.",
        )
        return
    if settings.archive_dir is None and settings.role != "all":
        yield report_warning(
            "archive",
            f"This {settings.role} node keeps archived clicks in its own data directory,"
            f" {directory}.",
            "Set REFRACT_ARCHIVE_DIR to one directory that all web and worker nodes share.",
        )
    yield from _check_directory("archive", directory, "REFRACT_ARCHIVE_DIR")


def _check_backup(settings: Settings) -> Iterator[DoctorFinding]:
    backed_up_at = get_last_backup(settings)
    if not backed_up_at:
        yield report_warning(
            "backup",
            "No backup yet.",
            "Run refract backup FILE every night (docs/how-to/backups.md).",
        )
        return
    hours = (time.time() - backed_up_at) / 3600
    if hours > MAX_BACKUP_AGE_HOURS:
        yield report_warning(
            "backup",
            f"The last successful backup is {hours / 24:.1f} days old.",
            "See journalctl -u refract-backup.",
        )
    else:
        yield report_ok(
            "backup", f"The last successful backup is {count_noun(round(hours), 'hour')} old."
        )


def _check_directory(subject: str, path: Path, variable: str) -> Iterator[DoctorFinding]:
    parents = (path, *path.absolute().parents)
    existing = next((parent for parent in parents if parent.exists()), Path("/"))
    if existing.is_file():
        yield report_error(
            subject, f"{existing} is a file, not a directory.", f"Correct {variable}."
        )
        return
    if not _is_writable(existing):
        yield report_error(
            subject,
            f"This user can't write to {existing}.",
            f"Give this user write access, or correct {variable}.",
        )
        return
    if path.exists() and path.stat().st_mode & 0o077:
        yield report_warning(
            subject, f"Other users of this machine can read {path}.", f"Run chmod 700 {path}."
        )
    inodes = os.statvfs(existing)
    if inodes.f_files and inodes.f_favail / inodes.f_files < MIN_FREE_INODE_SHARE:
        yield report_error(
            subject,
            f"{existing} has {inodes.f_favail:,} of {inodes.f_files:,} inodes left.",
            "Remove small files.",
        )
        return
    yield _check_free_space(subject, path, shutil.disk_usage(existing).free)


def _check_free_space(subject: str, path: Path, free: int) -> DoctorFinding:
    space = f"{free / (1 << 30):.1f} GiB free."
    message = (
        f"{path} has {space}"
        if path.exists()
        else f"{path} doesn't exist yet. Its disk has {space}"
    )
    if free < MIN_FREE_BYTES:
        return report_error(
            subject,
            message,
            "Free disk space. When it is full, clicks are lost and changes fail.",
        )
    if free < LOW_FREE_BYTES:
        return report_warning(subject, message, "Free disk space before it is full.")
    return report_ok(subject, message)


def _is_writable(path: Path) -> bool:
    """Return whether a file can be created; permissions alone don't show a read-only disk."""
    try:
        with tempfile.TemporaryFile(dir=path):
            return True
    except OSError:
        return False


def _check_clicks(settings: Settings) -> Iterator[DoctorFinding]:
    root = settings.effective_spool_dir
    pending = sum(count_pending(spool, SpoolPosition()).bytes for spool in list_spools(root))
    serving = has_ingester(root)
    if settings.role == "redirect" and settings.redis_url is None and not serving:
        yield report_error(
            "clicks",
            f"No process stores the clicks that this node writes to {root}.",
            "Set REFRACT_REDIS_URL, or start a worker with the same REFRACT_SPOOL_DIR.",
        )
    elif pending > MAX_SPOOL_BYTES:
        yield report_warning(
            "clicks",
            f"{pending / (1 << 20):.0f} MiB of clicks are pending in {root}.",
            "See the log of the process that stores them.",
        )
    else:
        ingester = "ingester running" if serving else "no server running here"
        yield report_ok("clicks", f"{pending / 1024:.0f} KiB pending, {ingester}.")
    if unreadable := list_quarantined(root):
        yield report_warning(
            "clicks",
            f"{count_noun(len(unreadable), 'file')} with unreadable clicks, such as"
            f" {unreadable[0]}.",
            "Check the disk, then run refract verify --acknowledge (docs/how-to/backups.md).",
        )


def _check_compiled() -> Iterator[DoctorFinding]:
    """Report whether fast lane and ingest are compiled. The results are the same."""
    parts = {
        "fast lane": (lane.WHY_NOT_COMPILED, "redirects cost"),
        "ingest": (ingest.WHY_NOT_COMPILED, "storing clicks costs"),
    }
    for part, (reason, what) in parts.items():
        text = (
            f"Python, because {reason}: {what} more CPU (docs/how-to/run-in-production.md)."
            if reason
            else "Compiled."
        )
        yield report_ok(part, text)


def _check_open_files() -> Iterator[DoctorFinding]:
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)  # a server raises its limit to this one
    if resource.RLIM_INFINITY != limit < MIN_OPEN_FILES:
        yield report_warning(
            "open files",
            f"The limit is {limit}, and every connection needs one.",
            "Raise it, for example with LimitNOFILE=65536 in the systemd unit.",
        )
    else:
        shown = "unlimited" if limit == resource.RLIM_INFINITY else limit
        yield report_ok("open files", f"The limit is {shown}.")
