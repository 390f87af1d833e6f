"""`refract doctor`."""

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from refract.cli.doctor import backends, configuration, domains, endpoints, machine
from refract.cli.doctor.findings import DoctorFinding, FindingStatus
from refract.cli.options import AsJson, DataDir
from refract.core.log import configure_logging
from refract.core.settings.loader import load_settings
from refract.core.settings.model import Settings
from refract.core.text import count_noun
from refract.server.installation import read_address

_STATUS_COLORS = {
    FindingStatus.OK: "green",
    FindingStatus.WARNING: "yellow",
    FindingStatus.ERROR: "red",
}


def doctor(
    data_dir: DataDir = None,
    as_json: AsJson = False,
    role: Annotated[
        str | None,
        typer.Option(help="Check the set-up of this role. [env: REFRACT_ROLE]", show_default="all"),
    ] = None,
) -> None:
    """Check the configuration, the machine, the database and connected services.

    Nothing is changed. Exit with 1 if there are errors.
    """
    settings = load_settings(data_dir=data_dir, role=role)
    configure_logging(settings.model_copy(update={"log_level": "error"}))
    found = asyncio.run(run_checks(settings))
    if as_json:
        typer.echo(json.dumps([finding.as_json() for finding in found], indent=1))
    else:
        _print_findings(found)
    if any(finding.status is FindingStatus.ERROR for finding in found):
        raise typer.Exit(1)


async def run_checks(settings: Settings) -> list[DoctorFinding]:
    """Run every check. None of them changes anything."""
    served = read_address(settings)
    found = [
        *configuration.check_configuration(settings, served.url if served else None),
        *machine.check_machine(settings),
    ]
    for check in (
        backends.check_database,
        backends.check_redis,
        domains.check_domains,
        endpoints.check_server,
        endpoints.check_issuers,
        endpoints.check_model,
        endpoints.check_trace_collector,
    ):
        found += await check(settings)
    return found


def _print_findings(found: list[DoctorFinding]) -> None:
    console = Console(soft_wrap=True)
    for finding in found:
        mark = f"[{_STATUS_COLORS[finding.status]}]{finding.status:>5}[/]"
        console.print(f"{mark} [bold]{escape(finding.subject)}[/] {escape(finding.message)}")
        if finding.remedy:
            console.print(f"       [dim]{escape(finding.remedy)}[/]")
    errors = sum(finding.status is FindingStatus.ERROR for finding in found)
    warnings = sum(finding.status is FindingStatus.WARNING for finding in found)
    console.print(
        f"{count_noun(len(found), 'check')}, {count_noun(warnings, 'warning')},"
        f" {count_noun(errors, 'error')}."
    )
