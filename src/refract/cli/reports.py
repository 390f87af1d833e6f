"""`refract reports`: abuse reports, from the terminal."""

import json
from typing import Annotated

import typer
from rich.table import Column, Table

from refract.admin import moderation
from refract.admin.moderation import Decision, ReportAction
from refract.cli.common import acting, command_settings, on_data
from refract.cli.links.shown import UNCUT, console, safe
from refract.cli.options import AsJson, DataDir
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import read_id
from refract.reports import queries
from refract.reports.errors import ReportNotFound
from refract.reports.models import ReportStatus
from refract.reports.schemas import ReportGroupOut

app = typer.Typer(help="Abuse reports: read the queue, dismiss what is harmless.", no_args_is_help=True)
_MOST = 200


@app.command("list")
def list_reports(
    closed: Annotated[bool, typer.Option("--closed", help="Those that were decided, instead of open ones.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show reports by target, at most 200: open ones with the oldest first."""
    status = ReportStatus.CLOSED if closed else ReportStatus.OPEN

    async def run(rt: Runtime) -> list[ReportGroupOut]:
        async with rt.db.read() as session:
            page = await queries.page_of_reports(session, Cursors(rt.secret), status, limit=_MOST, cursor=None)
        return list(page.items)

    found = on_data(command_settings(data_dir), run)
    if as_json:
        typer.echo(json.dumps([one.model_dump(mode="json") for one in found], indent=2))
        return
    if not found:
        typer.echo("No reports.")
        return
    table = Table(*(Column(title, overflow="fold") for title in ("id", "name", "kind", "reports", "reasons", "leads to", "owner", "state")))
    for one in found:
        leads_to = one.destination or ", ".join(one.hosts[:3])
        table.add_row(
            str(one.id),
            safe(one.name),
            one.kind,
            str(one.count),
            " ".join(one.reasons),
            safe(leads_to),
            safe(one.owner_email or "(no account)"),
            one.outcome or one.state,
        )
    console(UNCUT).print(table)


@app.command("dismiss")
def dismiss(
    report_id: Annotated[str, typer.Argument(help="The id that `refract reports list` shows.", metavar="ID")],
    data_dir: DataDir = None,
) -> None:
    """Close every report of one target without doing anything about it."""
    if not report_id.isdigit():
        raise ReportNotFound
    number = read_id(report_id)

    async def run(rt: Runtime) -> Decision:
        by = await acting(rt, None)
        async with rt.db.write() as session:
            return await moderation.decide(session, rt, by, number, ReportAction.DISMISS)

    typer.echo(on_data(command_settings(data_dir), run).said)
