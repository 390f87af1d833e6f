"""What an operator wants to know first: what runs, versions, clicks, jobs, disks, last backup.

The state of the server comes over HTTP, everything else is read here, so that a server that hangs
or a database that is away is a line of the result.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

import httpx
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel, Field
from sqlalchemy import func, select

from refract import __version__
from refract.admin.overview import load_overview
from refract.clicks.models import SpoolCheckpoint
from refract.clicks.verify import count_intake
from refract.core.db.schema_state import HEAD
from refract.core.db.session import ReadSession
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.core.worker_ids import count_leases
from refract.jobs.models import JobStatus
from refract.jobs.queries import count_open_jobs, get_oldest_due_seconds
from refract.server.metrics import get_last_backup, list_disks

REQUEST_SECONDS: Final = 5.0
ServerState = Literal["ready", "degraded", "starting", "stopping", "unreachable"]


class ProcessStatus(BaseModel):
    """A process of the server on this data directory."""

    name: str
    started_at: datetime
    memory_bytes: int


class ServerStatus(BaseModel):
    """The server on this data directory."""

    url: str
    state: ServerState
    version: str | None = None
    problems: list[str] = Field(default_factory=list)
    processes: list[ProcessStatus] = Field(default_factory=list)
    ingest_lag_seconds: float | None = Field(
        default=None, description="How long the oldest click waits to be stored."
    )


class DatabaseStatus(BaseModel):
    """The database and what it says about all nodes."""

    version: str
    revision: str
    bytes: int
    archive_bytes: int
    processes: int = Field(description="Processes of all nodes that write to it.")


class ClicksStatus(BaseModel):
    """Clicks of this node, and when the last of any node was stored."""

    stored: int
    pending: int
    lost: int
    last_stored_at: datetime | None


class JobsStatus(BaseModel):
    """Background jobs of the installation."""

    waiting: int
    running: int
    dead: int
    oldest_due_seconds: float


class DiskStatus(BaseModel):
    """The disk of a directory."""

    name: str
    path: str
    free_bytes: int
    size_bytes: int


class InstallationStatus(BaseModel):
    """An installation as seen from one of its nodes."""

    version: str = __version__
    role: str
    server: ServerStatus
    database: DatabaseStatus | None = None
    clicks: ClicksStatus | None = None
    jobs: JobsStatus | None = None
    database_problem: str | None = None
    disks: list[DiskStatus]
    last_backup_at: datetime | None

    @property
    def is_fine(self) -> bool:
        """Return whether everything serves and nothing waits for an operator."""
        return self.server.state == "ready" and self.database is not None


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """What the database says."""

    database: DatabaseStatus
    clicks: ClicksStatus
    jobs: JobsStatus


async def load_stored_status(rt: Runtime) -> StoredStatus:
    """Read what the database says."""
    async with rt.db.read() as session:
        last_stored = await session.scalar(select(func.max(SpoolCheckpoint.updated_at)))
        jobs = await _count_jobs(session, rt)
        processes = await count_leases(session, rt.clock)
    overview = await load_overview(rt)
    intake = await count_intake(rt)
    return StoredStatus(
        DatabaseStatus(
            version=overview.versions[-1],
            revision=HEAD,  # or the command would have been refused
            bytes=overview.database_bytes,
            archive_bytes=overview.archive_bytes,
            processes=processes,
        ),
        ClicksStatus(
            stored=intake.stored,
            pending=intake.pending,
            lost=intake.not_kept,
            last_stored_at=last_stored,
        ),
        jobs,
    )


async def _count_jobs(session: ReadSession, rt: Runtime) -> JobsStatus:
    by_status: dict[str, int] = {}
    for (status, _), number in (await count_open_jobs(session)).items():
        by_status[status] = by_status.get(status, 0) + number
    return JobsStatus(
        waiting=by_status.get(JobStatus.PENDING, 0) + by_status.get(JobStatus.FAILED, 0),
        running=by_status.get(JobStatus.IN_PROGRESS, 0),
        dead=by_status.get(JobStatus.DEAD, 0),
        oldest_due_seconds=await get_oldest_due_seconds(session, rt),
    )


async def ask_server(settings: Settings, url: str) -> ServerStatus:
    """Ask the server on this data directory how it is."""
    token = settings.metrics_token
    headers = {"authorization": f"Bearer {token.get_secret_value()}"} if token else {}
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=REQUEST_SECONDS, trust_env=False
    ) as client:
        try:
            ready = (await client.get("/ready")).json()
            metrics = await client.get("/metrics")
            state: ServerState = ready["status"]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as exc:
            reason = str(exc) or type(exc).__name__
            return ServerStatus(url=url, state="unreachable", problems=[reason])
    dependencies: Mapping[str, Mapping[str, str | None]] = ready.get("dependencies", {})
    down = [
        f"{name}: {dependency.get('detail') or 'down'}"
        for name, dependency in dependencies.items()
        if dependency["status"] != "ok"
    ]
    status = ServerStatus(
        url=url,
        state=state,
        version=ready.get("version"),
        problems=[*ready.get("problems", []), *down],
    )
    if metrics.status_code == httpx.codes.OK:
        _add_metrics(status, metrics.text)
    return status


def _add_metrics(status: ServerStatus, text: str) -> None:
    """Add what the metrics say of processes. Each has its own, under its name."""
    started: dict[str, float] = {}
    memory: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.labels.get("process", "0")
            match sample.name:
                case "process_start_time_seconds":
                    started[name] = sample.value
                case "process_resident_memory_bytes":
                    memory[name] = sample.value
                case "refract_ingest_lag_seconds" | "refract_ship_lag_seconds":
                    status.ingest_lag_seconds = max(status.ingest_lag_seconds or 0.0, sample.value)
    status.processes = [
        ProcessStatus(
            name=name,
            started_at=datetime.fromtimestamp(at, UTC),
            memory_bytes=int(memory.get(name, 0)),
        )
        for name, at in sorted(started.items())
    ]


def list_disk_status(settings: Settings) -> Iterable[DiskStatus]:
    """Return the disks of this node that must not fill up; directories on one disk once."""
    seen: set[int] = set()
    for name, path in list_disks(settings).items():
        try:
            device, found = path.stat().st_dev, os.statvfs(path)
        except OSError:  # not created yet
            continue
        if device not in seen:
            seen.add(device)
            yield DiskStatus(
                name=name,
                path=str(path.absolute()),
                free_bytes=found.f_bavail * found.f_frsize,
                size_bytes=found.f_blocks * found.f_frsize,
            )


def build_status(
    settings: Settings, server: ServerStatus, stored: StoredStatus | RefractError
) -> InstallationStatus:
    """Put together what was found."""
    backed_up_at = get_last_backup(settings)
    found = stored if isinstance(stored, StoredStatus) else None
    return InstallationStatus(
        role=settings.role,
        server=server,
        database=found.database if found else None,
        clicks=found.clicks if found else None,
        jobs=found.jobs if found else None,
        database_problem=str(stored.message) if isinstance(stored, RefractError) else None,
        disks=list(list_disk_status(settings)),
        last_backup_at=datetime.fromtimestamp(backed_up_at, UTC) if backed_up_at else None,
    )
