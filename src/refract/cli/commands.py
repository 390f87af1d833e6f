"""The table of commands, and how their errors are reported."""

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import typer

from refract import __version__
from refract.cli.groups import make_lazy_group
from refract.core.errors import RefractError
from refract.core.settings.env_file import load_env_file

COMMAND_TARGETS: Final = {
    "serve": "serve:serve",
    "signin-link": "signin:signin_link",
    "migrate": "migrate:migrate",
    "settings": "settings:show_settings",
    "verify": "verify:verify",
    "status": "status:status",
    "doctor": "doctor:doctor",
    "move": "transfer:move",
    "backup": "transfer:backup",
    "restore": "transfer:restore",
    "demo": "demo:demo",
    "shorten": "shorten:shorten",
    "save": "save:save",
    "stats": "stats:link_stats",
    "explain": "explain:explain",
    "keys": "keys:app",
    "links": "links:app",
    "utm": "utm:app",
    "lists": "lists:app",
    "domains": "domains:app",
    "teams": "teams:app",
    "reports": "reports:app",
    "library": "library:app",
    "export": "import_export:export_app",
    "import": "import_export:import_app",
    "users": "users:app",
    "admin": "admin:app",
}
"""Each command's module, and the function or `app` (a group of commands) in it."""


app = typer.Typer(
    cls=make_lazy_group(COMMAND_TARGETS),
    help="Refract: short links, go links, lists and bookmarks on your own server.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    env_file: Path | None = typer.Option(  # noqa: B008 - how typer reads options
        None,
        "--env-file",
        help="Read settings from a file, like systemd's EnvironmentFile. [env: REFRACT_ENV_FILE]",
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


def run(command: Callable[[], object] = app) -> None:
    """Run a command. Report errors in one sentence on standard error, without a traceback."""
    try:
        command()
    except RefractError as exc:
        _print_error(exc)
        sys.exit(exc.exit_code)
    except Exception as exc:  # noqa: BLE001 - the last resort, as in the web app
        from refract.core.db.errors import (  # noqa: PLC0415 - loads SQLAlchemy
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
                f"Internal error: {reason[:300]}. REFRACT_LOG_LEVEL=debug shows the traceback.",
                fg="red",
                err=True,
            )
        sys.exit(1)


def _print_error(error: RefractError) -> None:
    typer.secho(error.message, fg="red", err=True)
    for field_error in error.errors:
        if field_error.message != error.message:
            typer.secho(f"  {field_error.field}: {field_error.message}", err=True)
