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
from refract.transfer import backup as backups
from refract.transfer.manifest import BackupManifest
from refract.transfer.move import move_database as carry
from refract.transfer.replay import ReplayResult, check_lists, replay_revocations
from refract.transfer.restore import finish_restore, load_backup

ProgressCallback = Callable[[str, int, int], None]


class ServerRunning(Conflict):
    """A server is running on {path}. Stop it first, so that nothing is written meanwhile."""


@contextlib.contextmanager
def show_progress(what: str) -> Iterator[ProgressCallback]:
    """A progress bar per table, on standard error."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)

        def told(table: str, done: int, total: int) -> None:
            bars.update(task, description=f"{what} {table}", completed=done, total=total)

        yield told


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
                "Where to: postgresql://user@host/database or mysql://…; @FILE or env:NAME if it"
                " holds a password."
            ),
            metavar="URL",
        ),
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Empty the new database first, whatever it holds.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Copy a SQLite installation to PostgreSQL or MariaDB, and compare every table. Run it again to go on where it was cut off."""
    settings = load_command_settings(data_dir)
    there = load_settings({"database_url": "--to"}, data_dir=data_dir, database_url=read_secret(to))
    require_stopped_server(settings)

    async def run(source: Database) -> None:
        target = Database(there)
        try:
            with show_progress("Moving") as told:
                moved = await carry(source, target, told, again=again)
        finally:
            await target.close()
        verb = "Went on and moved" if moved.resumed else "Moved"
        typer.echo(
            f"{verb} {moved.rows:,} rows in {moved.tables} tables; every table is the same there."
        )

    run_on_database(settings, run)
    typer.echo(
        "Set REFRACT_DATABASE_URL to the new address and start. Clicks that wait in the spool and"
        " the old days' files stay where they are."
    )


def backup(
    path: Annotated[
        Path, typer.Argument(help="The file to write.", metavar="FILE", dir_okay=False)
    ],
    without_archive: Annotated[
        bool, typer.Option("--without-archive", help="Leave out archived clicks.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Write everything into one file, from one moment, while the server runs. It restores on any of the three databases."""
    settings = load_command_settings(data_dir)

    async def run(db: Database) -> BackupManifest:
        with show_progress("Backing up") as told:
            return await backups.create_backup(
                settings, db, path, SystemClock().now(), told, without_archive=without_archive
            )

    manifest = run_on_database(settings, run)
    try:
        backups.mark_backup(settings, path)
    except OSError as exc:
        where = settings.backup_marker
        typer.secho(
            f"{where} could not be written ({exc.strerror}): alerts will not know of this backup.",
            fg="yellow",
            err=True,
        )
    size = f"{path.stat().st_size:,} bytes"
    typer.echo(
        f"Wrote {manifest.rows:,} rows of {len(manifest.tables)} tables and {len(manifest.files)}"
        f" files to {path} ({size})."
    )


def restore(
    path: Annotated[Path, typer.Argument(help="A file that backup wrote.", metavar="FILE")],
    check: Annotated[
        bool, typer.Option("--check", help="Only read it and see whether it is whole.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Empty the database first, whatever it holds.")
    ] = False,
    without_archive: Annotated[
        bool, typer.Option("--without-archive", help="Accept a backup that lacks archived clicks.")
    ] = False,
    replay: Annotated[
        list[Path] | None,
        typer.Option(
            "--replay",
            help="Another list of revocations (revocations.jsonl); may be given several times.",
            metavar="FILE",
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Write a backup into an empty database and data directory, compare every table, and revoke again what was revoked since."""
    if check:
        manifest = backups.verify_backup(path, without_archive=without_archive)
        rows = f"{manifest.rows:,} rows of {len(manifest.tables)} tables"
        lacks = ", without archived clicks" if manifest.without_archive else ""
        typer.echo(
            f"{path} is whole: {rows}{lacks}, made {manifest.made_at} by {manifest.version}."
        )
        return
    check_lists(replay or ())
    settings = load_command_settings(data_dir, creates=True)
    require_stopped_server(settings)
    if again:
        _keep_revocations(settings)

    async def run(db: Database) -> tuple[BackupManifest, ReplayResult]:
        with show_progress("Restoring") as told:
            manifest = await load_backup(
                settings, db, path, told, again=again, without_archive=without_archive
            )
        async with open_runtime(settings) as rt:
            replayed = await replay_revocations(rt, replay or ())
        await finish_restore(db)
        return manifest, replayed

    manifest, replayed = run_on_database(settings, run)
    typer.echo(
        f"Restored {manifest.rows:,} rows of {len(manifest.tables)} tables; every table is as it"
        f" was at {manifest.made_at}."
    )
    typer.echo(f"Since then: {_describe(replayed)}.")
    typer.echo("Sessions and sign-in links are not restored: everyone signs in again.")
    if manifest.without_archive:
        typer.echo(
            "Archived clicks are not part of it: copy their files to"
            f" {settings.effective_archive_dir}."
        )


def _keep_revocations(settings: Settings) -> None:
    """Bring the list of revocations up to date before the database that knows of them is emptied.

    A database that cannot be read may be the reason for the restore, so that is said and no more.
    """
    try:
        state = run_on_database(settings, migrations.check_schema)
        if state.revision is not None and not state.is_restoring:
            run_on_data(settings, append_revocations)
    except RefractError as exc:
        problem = (
            "What was revoked here could not be added to the list of revocations: only what workers"
            " wrote there counts."
        )
        typer.secho(f"{problem} {exc}", fg="yellow", err=True)


def _describe(replayed: ReplayResult) -> str:
    """Return the counts of what was done again."""
    done = [
        f"{count_noun(replayed.keys, 'key')} revoked",
        f"{count_noun(replayed.suspended, 'person', 'people')} suspended",
        f"{count_noun(replayed.deleted, 'account')} deleted",
        f"{count_noun(replayed.barred, 'person', 'people')} barred",
    ]
    return f"{', '.join(done)} and {count_noun(replayed.demoted, 'administrator')} demoted again"
