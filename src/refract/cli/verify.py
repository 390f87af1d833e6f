"""`refract verify`."""

import typer
from rich.console import Console
from rich.table import Table

from refract.analytics.figures import add_up
from refract.cli.common import command_settings, on_data
from refract.cli.options import DataDir


def verify(data_dir: DataDir = None) -> None:
    """Show that the figures add up: accepted = stored + pending + not kept. Any drift is named, and ends with status 1."""
    figures = on_data(command_settings(data_dir), add_up)
    table = Table("clicks", "number", show_header=False, box=None)
    table.add_row("accepted", f"{figures.accepted:,}")
    table.add_row("= stored", f"{figures.stored:,}")
    table.add_row("+ pending", f"{figures.pending:,}")
    table.add_row("+ not kept", f"{figures.not_kept:,}")
    Console().print(table)
    if figures.drift:
        for sentence in figures.drift:
            typer.secho(sentence, fg="red", err=True)
        raise typer.Exit(1)
    typer.echo("Everything adds up.")
