"""`refract stats`."""

from datetime import date, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.table import Table

from refract.cli.common import InvalidValue, load_command_settings, run_on_data
from refract.cli.links.context import LinkArgument, load_context
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import make_console, make_safe_text
from refract.clicks import stats
from refract.clicks.stats import Breakdown, Granularity, LinkDashboard, SeriesPoint, StatsQuery
from refract.clicks.stats.schemas import BreakdownOut, DashboardOut, StatsOut, parse_when
from refract.core.runtime import Runtime

_BAR_WIDTH = 40
_FORMATS = {
    Granularity.HOUR: "%Y-%m-%d %H:%M",
    Granularity.DAY: "%Y-%m-%d",
    Granularity.WEEK: "%Y-%m-%d",
    Granularity.MONTH: "%Y-%m",
}


def link_stats(
    which: LinkArgument,
    *,
    begin: Annotated[
        str | None,
        typer.Option("--from", help="The first day or moment. Left out: 30 days.", metavar="WHEN"),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to", help="The day or moment before which it ends. Left out: now.", metavar="WHEN"
        ),
    ] = None,
    granularity: Annotated[
        Granularity, typer.Option("--by", help="How long a line of the series is.")
    ] = Granularity.DAY,
    tz: Annotated[
        str,
        typer.Option("--tz", help="Whose days: a time zone such as Europe/Berlin.", metavar="ZONE"),
    ] = "UTC",
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show the clicks of a link: over time, and by where they came from."""
    asked = StatsQuery(_parse_when(begin), _parse_when(end), granularity, tz, compare=True)

    async def run(rt: Runtime) -> LinkDashboard:
        desk = await load_context(rt, user)
        async with rt.db.read() as session:
            link = await desk.find_link(session, which)
            await stats.require_stats_access(session, desk.caller, link.id)
        async with rt.db.read() as session:
            return await stats.get_dashboard(session, link.id, asked, rt.clock.now())

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        parts = {name: BreakdownOut.model_validate(one) for name, one in found.breakdowns.items()}
        shape = DashboardOut(stats=StatsOut.model_validate(found.stats), breakdowns=parts)
        typer.echo(shape.model_dump_json(indent=2, by_alias=True))
    else:
        _print_dashboard(found)


def _parse_when(text: str | None) -> datetime | date | None:
    try:
        return parse_when(text) if text else None
    except ValueError as exc:
        raise InvalidValue(problem=str(exc)) from exc


def _print_dashboard(found: LinkDashboard) -> None:
    whole, before = found.stats.totals, found.stats.previous
    typer.echo(
        f"{whole.clicks:,} clicks by {whole.uniques:,} visitors, and {whole.bots:,} by bots",
        nl=before is None,
    )
    if before is not None:
        typer.echo(f" (the time before: {before.clicks:,})")
    zone = ZoneInfo(found.stats.time_zone)
    most = max((point.clicks for point in found.stats.series), default=0)
    table = Table(box=None, show_header=False, pad_edge=False)
    for point in found.stats.series:
        when = f"{point.at if point.utc_day else point.at.astimezone(zone):{_FORMATS[found.stats.granularity]}}"
        table.add_row(f"{when} UTC" if point.utc_day else when, *_format_point(point, most))
    make_console().print(table)
    for dimension, breakdown in found.breakdowns.items():
        if breakdown.items:
            typer.echo("")
            _print_breakdown(dimension, breakdown)


def _format_point(point: SeriesPoint, most: int) -> tuple[str, str]:
    return (
        ("no data", "")
        if point.no_data
        else (f"{point.clicks:,}", "▇" * round(_BAR_WIDTH * point.clicks / (most or 1)))
    )


def _print_breakdown(dimension: str, found: Breakdown) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(dimension, min_width=24)
    table.add_column("clicks", justify="right")
    table.add_column("", justify="right")
    for item in found.items:
        table.add_row(make_safe_text(item.label), f"{item.clicks:,}", f"{item.share:.0%}")
    if found.other:
        table.add_row("others", f"{found.other:,}", f"{found.other / found.total:.0%}")
    make_console().print(table)
