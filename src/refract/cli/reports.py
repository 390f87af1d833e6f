"""`refract reports`: abuse reports."""

from collections.abc import Iterable
from typing import Annotated

import typer

from refract.admin import moderation
from refract.admin.moderation import ReportAction, ReportDecision
from refract.cli.common import get_acting_user, load_command_settings, run_on_data
from refract.cli.options import AsJson, DataDir
from refract.cli.output import print_json_list
from refract.cli.tables import make_console, make_safe_text, make_table
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import parse_id
from refract.names.grammar import format_name, join_name
from refract.reports import queries
from refract.reports.errors import ReportNotFound
from refract.reports.models import ReportStatus
from refract.reports.schemas import ReportGroupOut

app = typer.Typer(help="List and dismiss abuse reports.", no_args_is_help=True)
_MAX_REPORTS = 200


@app.command("list")
def list_reports(
    closed: Annotated[
        bool, typer.Option("--closed", help="Show closed reports instead of open ones.")
    ] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List reports by target, at most 200. Open reports are listed oldest first."""
    status = ReportStatus.CLOSED if closed else ReportStatus.OPEN

    async def run(rt: Runtime) -> list[ReportGroupOut]:
        async with rt.db.read() as session:
            page = await queries.load_reports_page(
                session,
                CursorCodec(rt.secret),
                rt.settings.public_url,
                status,
                limit=_MAX_REPORTS,
                cursor=None,
            )
        return list(page.items)

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json_list(found)
    elif found:
        _print_reports(found)
    else:
        typer.echo("No reports.")


def _print_reports(found: Iterable[ReportGroupOut]) -> None:
    table = make_table("id", "name", "kind", "reports", "reasons", "destination", "owner", "status")
    for group in found:
        destination = group.destination or ", ".join(group.hosts[:3])
        table.add_row(
            str(group.id),
            make_safe_text(format_name(join_name(group.domain, group.name))),
            group.kind,
            str(group.count),
            " ".join(group.reasons),
            make_safe_text(destination),
            make_safe_text(group.owner_email or group.owner_team or "(no account)"),
            group.outcome or group.state,
        )
    make_console().print(table)


@app.command("dismiss")
def dismiss(
    report_id: Annotated[
        str, typer.Argument(help="Id, as listed by `refract reports list`.", metavar="ID")
    ],
    data_dir: DataDir = None,
) -> None:
    """Dismiss every report of a target without further action."""
    if not report_id.isdigit():
        raise ReportNotFound
    number = parse_id(report_id)

    async def run(rt: Runtime) -> ReportDecision:
        by = await get_acting_user(rt, None)
        async with rt.db.write() as session:
            return await moderation.decide_report(session, rt, by, number, ReportAction.DISMISS)

    typer.echo(run_on_data(load_command_settings(data_dir), run).message)
