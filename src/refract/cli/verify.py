"""`refract verify`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from refract.cli.common import load_command_settings, run_on_data
from refract.cli.options import DataDir
from refract.clicks.spool.reader import acknowledge_damage
from refract.clicks.verify import reconcile
from refract.core.text import count_noun


def verify(
    acknowledge: Annotated[
        bool,
        typer.Option(
            "--acknowledge",
            help="Acknowledge unreadable parts of the spool. They are kept and still counted.",
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Check that all clicks are accounted for: received = stored + pending + lost.

    Report any difference and exit with 1.
    """
    settings = load_command_settings(data_dir)
    if acknowledge:
        for path in acknowledge_damage(settings.effective_spool_dir):
            typer.echo(f"Acknowledged {path.name} ({path.stat().st_size:,} bytes).")
    figures = run_on_data(settings, reconcile)
    table = Table("clicks", "number", show_header=False, box=None)
    table.add_row("received", f"{figures.accepted:,}")
    table.add_row("= stored", f"{figures.stored:,}")
    table.add_row("+ pending", f"{figures.pending:,}")
    table.add_row("+ lost", f"{figures.not_kept:,}")
    if figures.acknowledged:
        table.add_row(
            "unreadable, acknowledged",
            f"{sum(figures.acknowledged):,} bytes in"
            f" {count_noun(len(figures.acknowledged), 'place')}",
        )
    Console().print(table)
    if figures.drift:
        for sentence in figures.drift:
            typer.secho(sentence, fg="red", err=True)
        raise typer.Exit(1)
    typer.echo("All clicks are accounted for.")
