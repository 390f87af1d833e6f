"""`refract doctor`."""

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from refract.cli.doctor import machine, servers, services, setup
from refract.cli.doctor.findings import Finding, Verdict
from refract.cli.installation import read_address
from refract.cli.options import AsJson, DataDir
from refract.core.configuring import load_settings
from refract.core.log import configure_logging
from refract.core.settings import Settings

_COLOURS = {Verdict.WELL: "green", Verdict.MIND: "yellow", Verdict.WRONG: "red"}


def doctor(
    data_dir: DataDir = None,
    as_json: AsJson = False,
    role: Annotated[str | None, typer.Option(help="Look at it as this role would. [env: REFRACT_ROLE]", show_default="all")] = None,
) -> None:
    """Say what is wrong with this set-up, and what to do about it. Nothing is changed; status 1 when something is wrong."""
    settings = load_settings(data_dir=data_dir, role=role)
    configure_logging(settings.model_copy(update={"log_level": "error"}))
    found = asyncio.run(examine(settings))
    if as_json:
        typer.echo(json.dumps([finding.as_json() for finding in found], indent=1))
    else:
        _show(found)
    if any(finding.verdict is Verdict.WRONG for finding in found):
        raise typer.Exit(1)


async def examine(settings: Settings) -> list[Finding]:
    """Everything that can be found out without changing anything."""
    served = read_address(settings)
    found = [*setup.look(settings, served.url if served else None), *machine.look(settings)]
    for look in (
        servers.look_at_database,
        servers.look_at_redis,
        services.look_at_server,
        services.look_at_issuers,
        services.look_at_model,
        services.look_at_traces,
    ):
        found += await look(settings)
    return found


def _show(found: list[Finding]) -> None:
    console = Console(soft_wrap=True)
    for finding in found:
        mark = f"[{_COLOURS[finding.verdict]}]{finding.verdict:>5}[/]"
        console.print(f"{mark} [bold]{escape(finding.subject)}[/] {escape(finding.sentence)}")
        if finding.remedy:
            console.print(f"       [dim]{escape(finding.remedy)}[/]")
    wrong = sum(finding.verdict is Verdict.WRONG for finding in found)
    mind = sum(finding.verdict is Verdict.MIND for finding in found)
    console.print(f"{len(found)} looked at, {wrong} wrong, {mind} to mind.")
