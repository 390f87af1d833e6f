"""`refract move`, `refract backup`, `refract restore`."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from refract import migrations
from refract.cli.common import load_command_settings, read_secret, run_on_data, run_on_database
from refract.cli.options import DataDir
from refract.clicks.spool.reader import has_ingester, list_spools
from refract.core.clock import SystemClock
from refract.core.db.session import Database
from refract.core.errors import Conflict, RefractError
from refract.core.runtime import open_runtime
from refract.core.settings.loader import load_settings
from refract.core.settings.model import Settings
from refract.core.text import count_noun
from refract.identity.revocation_log import append_revocations
from refract.registry import list_personal_data_hooks, list_team_hooks
from refract.transfer import backup as backups
from refract.transfer.manifest import BackupManifest
from refract.transfer.move import move_database
from refract.transfer.replay import ReplayResult, check_lists, replay_revocations
from refract.transfer.restore import finish_restore, load_backup

ProgressCallback = Callable[[str, int, int], None]


class BackupExists(Conflict):
    """{path} already exists. Choose another name, or replace it with --force."""


class ServerRunning(Conflict):
    """A server is running on {path}. Stop it first, so that nothing is written meanwhile."""


@contextlib.contextmanager
def show_progress(what: str) -> Iterator[ProgressCallback]:
    """Show a progress bar per table on standard error; yield the function that updates it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)

        def report_progress(table: str, done: int, total: int) -> None:
            bars.update(task, description=f"{what} {table}", completed=done, total=total)

        yield report_progress


def require_stopped_server(settings: Settings) -> None:
    root = settings.effective_spool_dir
    if has_ingester(root) or any(spool.is_live for spool in list_spools(root)):
        raise ServerRunning(path=settings.data_dir)


def move(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help=(
                "Target: postgresql://user@host/database or mysql://…; @FILE or env:NAME to keep a"
                " password out of the arguments."
            ),
            metavar="URL",
        ),
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Empty the target database first.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Copy a SQLite installation to PostgreSQL or MariaDB and verify every table.

    Run it again to resume after an interruption.
    """
    settings = load_command_settings(data_dir)
    target_settings = load_settings(
        {"database_url": "--to"}, data_dir=data_dir, database_url=read_secret(to)
    )
    require_stopped_server(settings)

    async def run(source: Database) -> None:
        target = Database(target_settings)
        try:
            with show_progress("Moving") as report_progress:
                moved = await move_database(source, target, report_progress, again=again)
        finally:
            await target.close()
        verb = "Resumed and moved" if moved.resumed else "Moved"
        typer.echo(
            f"{verb} {count_noun(moved.rows, 'row')} in {count_noun(moved.tables, 'table')}. Every"
            " table matches."
        )

    run_on_database(settings, run)
    typer.echo(
        "Set REFRACT_DATABASE_URL to the new database and start the server. Pending clicks and"
        " archive files stay where they are."
    )


def backup(
    path: Annotated[Path, typer.Argument(help="File to write.", metavar="FILE", dir_okay=False)],
    without_archive: Annotated[
        bool, typer.Option("--without-archive", help="Leave out archived clicks.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Write a consistent backup into one file, also while the server runs.

    It can be restored on SQLite, PostgreSQL and MariaDB.
    """
    settings = load_command_settings(data_dir)
    if path.is_file() and not force:  # a device such as /dev/null is nothing to lose
        raise BackupExists(path=path)

    async def run(db: Database) -> BackupManifest:
        with show_progress("Backing up") as report_progress:
            return await backups.create_backup(
                settings,
                db,
                path,
                SystemClock().now(),
                report_progress,
                without_archive=without_archive,
            )

    manifest = run_on_database(settings, run)
    try:
        backups.mark_backup(settings, path)
    except OSError as exc:
        where = settings.backup_marker
        typer.secho(
            f"Can't write {where} ({exc.strerror}). Alerts won't see this backup.",
            fg="yellow",
            err=True,
        )
    size = f"{path.stat().st_size:,} bytes"
    typer.echo(
        f"Wrote {_describe_rows(manifest)} and {count_noun(len(manifest.files), 'file')} to {path}"
        f" ({size})."
    )


def restore(
    path: Annotated[Path, typer.Argument(help="Backup file.", metavar="FILE")],
    check: Annotated[
        bool, typer.Option("--check", help="Only check that the file is complete.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Empty the database first.")] = False,
    without_archive: Annotated[
        bool, typer.Option("--without-archive", help="Accept a backup that lacks archived clicks.")
    ] = False,
    replay: Annotated[
        list[Path] | None,
        typer.Option(
            "--replay",
            help="Another revocations.jsonl. Repeat for several.",
            metavar="FILE",
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Restore a backup into an empty database and data directory, and verify every table.

    Keys and accounts that were revoked after the backup are revoked again.
    """
    if check:
        manifest = backups.verify_backup(path, without_archive=without_archive)
        lacks = ", without archived clicks" if manifest.without_archive else ""
        typer.echo(
            f"{path} is complete: {_describe_rows(manifest)}{lacks}, created {manifest.made_at} by"
            f" Refract {manifest.version}."
        )
        return
    check_lists(replay or ())
    settings = load_command_settings(data_dir, creates=True)
    require_stopped_server(settings)
    if again:
        _keep_revocations(settings)

    async def run(db: Database) -> tuple[BackupManifest, ReplayResult]:
        with show_progress("Restoring") as report_progress:
            manifest = await load_backup(
                settings, db, path, report_progress, again=again, without_archive=without_archive
            )
        async with open_runtime(settings) as rt:
            hooks = list_personal_data_hooks(), list_team_hooks()
            replayed = await replay_revocations(rt, *hooks, replay or ())
        await finish_restore(db)
        return manifest, replayed

    manifest, replayed = run_on_database(settings, run)
    typer.echo(
        f"Restored {_describe_rows(manifest)}. Every table is as it was at {manifest.made_at}."
    )
    typer.echo(f"Since then: {_describe_replay(replayed)}.")
    typer.echo("Sessions and sign-in links are not restored: everyone must sign in again.")
    if manifest.without_archive:
        typer.echo(
            "Archived clicks are not included. Copy their files to"
            f" {settings.effective_archive_dir}."
        )


def _keep_revocations(settings: Settings) -> None:
    """Update the list of revocations before the database is emptied.

    Only warn if that fails: an unreadable database may be the reason for the restore.
    """
    try:
        state = run_on_database(settings, migrations.check_schema)
        if state.revision is not None and not state.is_restoring:
            run_on_data(settings, append_revocations)
    except RefractError as exc:
        problem = (
            "Can't add this database's revocations to the list; only those that workers"
            " wrote there are applied again."
        )
        typer.secho(f"{problem} {exc}", fg="yellow", err=True)


def _describe_rows(manifest: BackupManifest) -> str:
    rows = count_noun(manifest.rows, "row")
    return f"{rows} in {count_noun(len(manifest.tables), 'table')}"


def _describe_replay(replayed: ReplayResult) -> str:
    """Return the numbers of repeated revocations in words."""
    done = [
        f"{count_noun(replayed.keys, 'key')} revoked",
        f"{count_noun(replayed.suspended, 'person', 'people')} suspended",
        f"{count_noun(replayed.deleted, 'account')} deleted",
        f"{count_noun(replayed.barred, 'person', 'people')} barred",
        f"{count_noun(replayed.demoted, 'administrator')} demoted",
    ]
    done.append(f"{count_noun(replayed.managers, 'team manager')} demoted")
    return f"{', '.join(done)} and {count_noun(replayed.members, 'team member')} removed again"
