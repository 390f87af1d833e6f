"""`refract status`."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import typer

from refract.cli.common import load_command_settings, run_on_data
from refract.cli.doctor.endpoints import get_local_url
from refract.cli.options import AsJson, DataDir
from refract.cli.output import print_json
from refract.core.errors import RefractError
from refract.core.settings.model import Settings
from refract.core.text import count_noun
from refract.server.status import (
    InstallationStatus,
    StoredStatus,
    ask_server,
    build_status,
    load_stored_status,
)
from refract.web.formats import format_bytes

_COLORS = {"ready": "green", "degraded": "yellow", "starting": "yellow", "stopping": "yellow"}


def status(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show what runs here: processes, database, clicks, jobs, disks and the last backup.

    Exit with 1 if the server or the database does not work.
    """
    settings = load_command_settings(data_dir)
    server = asyncio.run(ask_server(settings, get_local_url(settings)))
    found = build_status(settings, server, _load_stored(settings))
    if as_json:
        print_json(found)
    else:
        for name, value in _describe(found, datetime.now(UTC)):
            typer.echo(f"{typer.style(f'{name:<10}', dim=True)} {value}")
    if not found.is_fine:
        raise typer.Exit(1)


def _load_stored(settings: Settings) -> StoredStatus | RefractError:
    try:
        return run_on_data(settings, load_stored_status, makes_ids=False)
    except RefractError as exc:
        return exc


def _describe(found: InstallationStatus, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each line. A continued line has no name."""
    server = found.server
    color = _COLORS.get(server.state, "red")
    yield "refract", f"{found.version}, role {found.role}"
    version = f", version {server.version}" if server.version not in (None, found.version) else ""
    yield "server", f"{typer.style(server.state, fg=color)}{version} at {server.url}"
    for problem in server.problems:
        yield "", typer.style(problem, fg=color)
    for process in server.processes:
        age = _format_span(now - process.started_at)
        memory = format_bytes(process.memory_bytes)
        yield "", f"process {process.name}: {memory}, started {age} ago"
    yield from _describe_stored(found, now)
    for disk in found.disks:
        free, size = format_bytes(disk.free_bytes), format_bytes(disk.size_bytes)
        yield "disk", f"{free} of {size} free ({disk.name}: {disk.path})"
    last = found.last_backup_at
    yield "backup", f"{_format_span(now - last)} ago" if last else "none yet: refract backup FILE"


def _describe_stored(found: InstallationStatus, now: datetime) -> Iterator[tuple[str, str]]:
    if found.database_problem is not None:
        yield "database", typer.style(found.database_problem, fg="red")
    if found.database is None or found.clicks is None or found.jobs is None:
        return
    database, clicks, jobs = found.database, found.clicks, found.jobs
    users = count_noun(database.processes, "process", "processes")
    size = format_bytes(database.bytes)
    yield "database", f"{database.version}, revision {database.revision}, {size}, used by {users}"
    archived = database.archive_bytes
    yield "archive", f"{format_bytes(archived)} of old clicks" if archived else "empty"
    last = clicks.last_stored_at
    stored = f", the last {_format_span(now - last)} ago" if last else ""
    lag = found.server.ingest_lag_seconds
    waiting = f" (for {lag:.1f} s)" if clicks.pending and lag else ""
    pending = f"{clicks.pending:,} pending{waiting}"
    yield "clicks", f"{clicks.stored:,} stored{stored}; {pending}; {clicks.lost:,} lost"
    due = _format_span(timedelta(seconds=jobs.oldest_due_seconds))
    late = f", the oldest due for {due}" if jobs.oldest_due_seconds >= 1 else ""
    yield (
        "jobs",
        f"{jobs.waiting:,} waiting{late}; {jobs.running:,} running; {jobs.dead:,} failed for good",
    )


def _format_span(span: timedelta) -> str:
    """Format how long something took or is ago: 12 s, 5 min, 3 h, 4 days."""
    seconds = max(0.0, span.total_seconds())
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"
