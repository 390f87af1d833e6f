"""Every command, and what happens when one fails."""

import sys

import structlog
import typer

from refract import __version__
from refract.cli import (
    admin,
    demo,
    doctor,
    export,
    imports,
    keys,
    library,
    links,
    migrate,
    save,
    serve,
    shorten,
    signin,
    stats,
    transfer,
    verify,
)
from refract.cli.library import files
from refract.core.errors import RefractError
from refract.core.faults import meaning

app = typer.Typer(
    help="One home for every link: shorten, name, redirect, count, collect, save.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("signin-link")(signin.signin_link)
app.command("migrate")(migrate.migrate)
app.command("verify")(verify.verify)
app.command("doctor")(doctor.doctor)
app.command("move")(transfer.move)
app.command("backup")(transfer.backup)
app.command("restore")(transfer.restore)
app.command("demo")(demo.demo)
app.add_typer(keys.app, name="keys")
app.command("shorten")(shorten.shorten)
app.command("save")(save.save)
app.add_typer(links.app, name="links")
app.add_typer(library.app, name="library")
export.app.command("library")(files.export_library)
imports.app.command("library")(files.import_library)
imports.app.command("list")(files.list_imports)
imports.app.command("rollback")(files.roll_back)
app.command("stats")(stats.link_stats)
app.add_typer(export.app, name="export")
app.add_typer(imports.app, name="import")
app.add_typer(admin.app, name="admin")


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def run() -> None:
    """Run a command. What went wrong is one sentence on standard error, never a traceback."""
    try:
        app()
    except RefractError as error:
        _say(error)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001 - the last resort, as at the edge of the web
        if word := meaning(error):
            _say(word)
        else:
            structlog.get_logger("refract.cli").debug("command_failed", exc_info=error)
            reason = " ".join(str(error).split()) or type(error).__name__
            typer.secho(f"Something went wrong on our side: {reason[:300]}. REFRACT_LOG_LEVEL=debug shows where.", fg="red", err=True)
        sys.exit(1)


def _say(error: RefractError) -> None:
    typer.secho(error.message, fg="red", err=True)
    for one in error.errors:
        if one.message != error.message:
            typer.secho(f"  {one.field}: {one.message}", err=True)
