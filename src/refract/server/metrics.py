"""Metrics of a node as a whole: version, disks, spool and the last backup. Read on demand."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from refract import __version__
from refract.clicks.spool.reader import has_ingester, list_quarantined
from refract.core.settings.model import Settings

BACKED_UP_ROLES: Final = frozenset({"all", "web", "worker"})
"""Roles that see the directory of archived clicks, where a backup leaves its time."""


class NodeMetrics(Collector):
    """The metrics of one node, the same in each of its processes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        settings = self._settings
        build = GaugeMetricFamily(
            "refract_build_info",
            "1, with the version and the role of the process",
            labels=["version", "role"],
        )
        build.add_metric([__version__, settings.role], 1)
        yield build
        yield from self._collect_disks()
        spool = settings.effective_spool_dir
        if settings.role != "worker":
            attended = settings.spool_reader == "elsewhere" or has_ingester(spool)
            yield GaugeMetricFamily(
                "refract_spool_unattended",
                "1 while no process stores or ships clicks of this node",
                int(not attended),
            )
        damaged = len(list_quarantined(spool))
        yield GaugeMetricFamily(
            "refract_spool_damaged",
            "Unreadable pieces of the spool that are not acknowledged",
            damaged,
        )
        if settings.role in BACKED_UP_ROLES:
            at = get_last_backup(settings)
            yield GaugeMetricFamily(
                "refract_backup_timestamp_seconds",
                "When the last good backup was made; 0 if never",
                at,
            )

    def _collect_disks(self) -> Iterator[Metric]:
        free = GaugeMetricFamily(
            "refract_disk_free_bytes", "Free bytes on the disk of a directory", labels=["directory"]
        )
        whole = GaugeMetricFamily(
            "refract_disk_size_bytes", "Size of the disk of a directory", labels=["directory"]
        )
        inodes = GaugeMetricFamily(
            "refract_disk_free_inodes_ratio", "Share of inodes that are free", labels=["directory"]
        )
        for name, path in list_disks(self._settings).items():
            with contextlib.suppress(OSError):  # not created yet
                found = os.statvfs(path)
                free.add_metric([name], found.f_bavail * found.f_frsize)
                whole.add_metric([name], found.f_blocks * found.f_frsize)
                inodes.add_metric([name], found.f_favail / found.f_files if found.f_files else 1.0)
        yield from (free, whole, inodes)


def list_disks(settings: Settings) -> dict[str, Path]:
    """Return the directories that must not fill up, by the name in their label."""
    found = {"data": settings.data_dir}
    if settings.role != "worker":
        found["spool"] = settings.effective_spool_dir
    if settings.role in BACKED_UP_ROLES:
        found["archive"] = settings.effective_archive_dir
    return found


def get_last_backup(settings: Settings) -> float:
    """Return when the last good backup was made, or 0."""
    try:
        return settings.backup_marker.stat().st_mtime
    except OSError:
        return 0.0
