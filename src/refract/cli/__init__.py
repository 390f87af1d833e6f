"""The `refract` command."""

import sys

import typer

from refract import __version__
from refract.cli import export, imports, keys, links, migrate, serve, shorten, signin
from refract.core.errors import RefractError

app = typer.Typer(
    help="One home for every link: shorten, name, redirect, count, collect, save.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.serve)
app.command("signin-link")(signin.signin_link)
app.command("migrate")(migrate.migrate)
app.add_typer(keys.app, name="keys")
app.command("shorten")(shorten.shorten)
app.add_typer(links.app, name="links")
app.add_typer(export.app, name="export")
app.add_typer(imports.app, name="import")


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run a command. What went wrong is one sentence on standard error, never a traceback."""
    try:
        app()
    except RefractError as error:
        typer.secho(error.message, fg="red", err=True)
        for one in error.errors:
            if one.message != error.message:
                typer.secho(f"  {one.field}: {one.message}", err=True)
        sys.exit(error.exit_code)
