"""Every command, and what happens when one fails."""

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperGroup

from refract import __version__
from refract.core.errors import RefractError
from refract.core.settings.env_file import load_env_file

COMMAND_TARGETS: Final = {
    "serve": "serve:serve",
    "signin-link": "signin:signin_link",
    "migrate": "migrate:migrate",
    "settings": "settings:show_settings",
    "verify": "verify:verify",
    "doctor": "doctor:doctor",
    "move": "transfer:move",
    "backup": "transfer:backup",
    "restore": "transfer:restore",
    "demo": "demo:demo",
    "shorten": "shorten:shorten",
    "save": "save:save",
    "stats": "stats:link_stats",
    "keys": "keys:app",
    "links": "links:app",
    "lists": "lists:app",
    "reports": "reports:app",
    "library": "library:app",
    "export": "import_export:writing",
    "import": "import_export:bringing",
    "admin": "admin:app",
}
"""Each command's module here, and what it is called there: a function, or an `app` with commands of its own."""


class LazyCommands(Mapping[str, Any]):
    """Each loaded when it is asked for: a server that only redirects has nothing to do with the others' libraries."""

    def __getitem__(self, name: str) -> Any:
        module, attribute = COMMAND_TARGETS[name].split(":")
        found = getattr(import_module(f"refract.cli.{module}"), attribute)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            alone.command(name)(found)
            return typer.main.get_command(alone)
        command = typer.main.get_group(found)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(COMMAND_TARGETS)

    def __len__(self) -> int:
        return len(COMMAND_TARGETS)


class RootGroup(TyperGroup):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = LazyCommands()  # type: ignore[assignment]  # nobody adds one


app = typer.Typer(
    cls=RootGroup,
    help="One home for every link: shorten, name, redirect, count, collect, save.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    env_file: Path | None = typer.Option(  # noqa: B008 - how typer reads options
        None,
        "--env-file",
        help="Settings in a file, as systemd's EnvironmentFile. [env: REFRACT_ENV_FILE]",
        metavar="FILE",
    ),
) -> None:
    gc.freeze()  # see `refract.cli.main`
    gc.enable()
    os.umask(0o077)
    if file := env_file or os.environ.get("REFRACT_ENV_FILE"):
        load_env_file(Path(file))
    if version:
        typer.echo(__version__)
        raise typer.Exit


def run() -> None:
    """Run a command. What went wrong is one sentence on standard error, never a traceback."""
    try:
        app()
    except RefractError as exc:
        _print_error(exc)
        sys.exit(exc.exit_code)
    except Exception as exc:  # noqa: BLE001 - the last resort, as at the edge of the web
        from refract.core.db.errors import (  # noqa: PLC0415 - knows every driver, and is needed by few
            format_driver_error,
            translate_db_error,
        )

        if word := translate_db_error(exc):
            _print_error(word)
        else:
            import structlog  # noqa: PLC0415 - as above

            structlog.get_logger("refract.cli").debug("command_failed", exc_info=exc)
            reason = format_driver_error(exc)
            typer.secho(
                f"Something went wrong on our side: {reason[:300]}. REFRACT_LOG_LEVEL=debug shows"
                " where.",
                fg="red",
                err=True,
            )
        sys.exit(1)


def _print_error(error: RefractError) -> None:
    typer.secho(error.message, fg="red", err=True)
    for one in error.errors:
        if one.message != error.message:
            typer.secho(f"  {one.field}: {one.message}", err=True)
