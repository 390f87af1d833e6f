"""`refract migrate`."""

from typing import Annotated

import typer

from refract import __version__, migrations
from refract.cli.common import InvalidValue, load_command_settings, run_on_database
from refract.cli.options import DataDir
from refract.core.db.session import Database
from refract.core.settings.model import Settings
from refract.migrations.losses import DowngradeLoss, read_losses


def migrate(
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="The revision to bring it to, older or newer. Left out: this version's.",
            metavar="REV",
        ),
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Only say which revision it is at.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="The same, and status 1 if this version cannot work on it."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before something is lost.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Bring the database to this version's schema, or to another revision. `serve` migrates by itself."""
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
        typer.echo(f"Ran {len(ran)} steps; the schema is at {ran[-1]}.")
    elif state.is_ahead:
        typer.echo(
            f"The schema is at {state.revision}, newer than this version's {migrations.HEAD}, which"
            " can work on it."
        )
    else:
        typer.echo(f"The schema is up to date ({target}).")


def _check_revision(revision: str) -> str:
    if revision not in migrations.list_revisions():
        raise InvalidValue(
            problem=(
                f'There is no revision "{revision}": this version knows 0001 to {migrations.HEAD}.'
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
        f"The database is at {state.revision or 'no revision'}; Refract {__version__} knows up to"
        f" {migrations.HEAD}."
    )
    if state.problem is not None:
        typer.echo(state.problem.message)
    elif state.is_ahead:
        typer.echo("A newer version has upgraded it; this one can work on it.")
    if behind:
        typer.echo(f"To run: {', '.join(behind)}.")
    if fails and state.problem is not None:
        raise typer.Exit(1)


def _downgrade(settings: Settings, found: str, target: str, *, yes: bool) -> None:
    if found > migrations.HEAD:
        raise InvalidValue(
            problem=(
                f"The database is at {found}, and this version knows only up to {migrations.HEAD}:"
                f" the newer version can take it back, with refract migrate --to {target}."
            )
        )

    async def look(db: Database) -> list[DowngradeLoss]:
        async with db.engine.connect() as connection:
            return await read_losses(connection, found, target)

    lost = run_on_database(settings, look)
    typer.echo(
        f"Going back from {found} to {target} loses:"
        if lost
        else f"Going back from {found} to {target} loses nothing."
    )
    for loss in lost:
        typer.echo(f"  {loss}")
    if not yes:
        typer.confirm("Versions that need the newer schema must be stopped. Go back?", abort=True)
    ran = run_on_database(settings, lambda db: migrations.downgrade(db, target))
    typer.echo(f"Took back {len(ran)} steps; the schema is at {target}.")
