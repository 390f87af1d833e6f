"""`refract migrate`."""

from typing import Annotated

import typer

from refract import __version__, migrations
from refract.cli.common import InvalidValue, load_command_settings, run_on_database
from refract.cli.options import DataDir
from refract.core.db.session import Database
from refract.core.settings.model import Settings
from refract.core.text import count_noun
from refract.migrations.losses import DowngradeLoss, read_losses


def migrate(
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Target revision, older or newer. Default: the newest.",
            metavar="REV",
        ),
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Only print the current revision.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Like --status; exit with 1 if this version can't use it."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before data is lost.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Migrate the database to the newest schema, or to another revision.

    `refract serve` does this automatically.
    """
    settings = load_command_settings(data_dir, creates=not (status or check or to))
    if status or check:
        _print_status(settings, fails=check)
        return
    target = _check_revision(to) if to else migrations.HEAD
    state = run_on_database(settings, migrations.check_schema)
    if to and state.revision is not None and target < state.revision:
        _downgrade(settings, state.revision, target, yes=yes)
        return
    ran = run_on_database(settings, lambda db: migrations.upgrade(db, to))
    if ran:
        typer.echo(f"Ran {count_noun(len(ran), 'migration')}. The schema is at revision {ran[-1]}.")
    elif state.is_ahead:
        typer.echo(
            f"The schema is at revision {state.revision}, newer than {migrations.HEAD}. This"
            " version can use it."
        )
    else:
        typer.echo(f"The schema is up to date (revision {target}).")


def _check_revision(revision: str) -> str:
    if revision not in migrations.list_revisions():
        raise InvalidValue(
            problem=(
                f'There\'s no revision "{revision}". This version has 0001 to {migrations.HEAD}.'
            )
        )
    return revision


def _print_status(settings: Settings, *, fails: bool) -> None:
    state = run_on_database(settings, migrations.check_schema)
    behind = [
        revision
        for revision in migrations.list_revisions()
        if state.revision is None or revision > state.revision
    ]
    typer.echo(
        f"The database is at {f'revision {state.revision}' if state.revision else 'no revision'}."
        f" The newest in Refract {__version__} is {migrations.HEAD}."
    )
    if state.problem is not None:
        typer.echo(state.problem.message)
    elif state.is_ahead:
        typer.echo("A newer version migrated it. This version can use it.")
    if behind:
        typer.echo(f"Pending: {', '.join(behind)}.")
    if fails and state.problem is not None:
        raise typer.Exit(1)


def _downgrade(settings: Settings, found: str, target: str, *, yes: bool) -> None:
    if found > migrations.HEAD:
        raise InvalidValue(
            problem=(
                f"The database is at revision {found}; the newest in this version is"
                f" {migrations.HEAD}. Downgrade it with the newer version: refract migrate --to"
                f" {target}."
            )
        )

    async def look(db: Database) -> list[DowngradeLoss]:
        async with db.engine.connect() as connection:
            return await read_losses(connection, found, target)

    lost = run_on_database(settings, look)
    typer.echo(
        f"Downgrading from {found} to {target} loses:"
        if lost
        else f"Downgrading from {found} to {target} loses nothing."
    )
    for loss in lost:
        typer.echo(f"  {loss}")
    if not yes:
        typer.confirm("Stop every server that needs the newer schema first. Downgrade?", abort=True)
    ran = run_on_database(settings, lambda db: migrations.downgrade(db, target))
    typer.echo(f"Reverted {count_noun(len(ran), 'migration')}. The schema is at revision {target}.")
