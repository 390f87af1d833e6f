"""`refract stats`."""

from datetime import date, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.table import Table

from refract.cli.common import InvalidValue, load_command_settings, run_on_data
from refract.cli.links.context import LinkArgument, load_context
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.tables import make_console, make_safe_text
from refract.clicks import stats
from refract.clicks.rollups.breakdowns import ABSENT_VALUES
from refract.clicks.stats import Breakdown, Granularity, LinkDashboard, SeriesPoint, StatsQuery
from refract.clicks.stats.filters import ClickFilter
from refract.clicks.stats.overview import load_scope_dashboard
from refract.clicks.stats.schemas import BreakdownOut, DashboardOut, StatsOut, parse_when
from refract.clicks.stats.scope import LinkScope
from refract.core.runtime import Runtime
from refract.core.text import count_noun

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
        typer.Option("--from", help="Start: a date or time. Default: 30 days ago.", metavar="WHEN"),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", help="End, exclusive: a date or time. Default: now.", metavar="WHEN"),
    ] = None,
    granularity: Annotated[
        Granularity, typer.Option("--by", help="Length of an interval.")
    ] = Granularity.DAY,
    tz: Annotated[
        str,
        typer.Option("--tz", help="Time zone, such as Europe/Berlin.", metavar="ZONE"),
    ] = "UTC",
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show the clicks of a link over time, and by country, referrer and more."""
    query = StatsQuery(_parse_when(begin), _parse_when(end), granularity, tz, compare=True)

    async def run(rt: Runtime) -> LinkDashboard:
        context = await load_context(rt, user)
        async with rt.db.read() as session:
            link = await context.find_link(session, which)
            await stats.require_stats_access(session, context.caller, link.id)
        return await load_scope_dashboard(
            rt, LinkScope(link.id), ClickFilter(), query, rt.clock.now(), links=0
        )

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        parts = {name: BreakdownOut.model_validate(part) for name, part in found.breakdowns.items()}
        response = DashboardOut(stats=StatsOut.model_validate(found.stats), breakdowns=parts)
        typer.echo(response.model_dump_json(indent=2, by_alias=True))
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
        f"{count_noun(whole.clicks, 'click')} by {count_noun(whole.uniques, 'unique visitor')};"
        f" bots, excluded: {whole.bots:,}",
        nl=before is None,
    )
    if before is not None:
        typer.echo(f" (previous period: {before.clicks:,})")
    zone = ZoneInfo(found.stats.time_zone)
    max_clicks = max((point.clicks for point in found.stats.series), default=0)
    table = Table(box=None, show_header=False, pad_edge=False)
    for point in found.stats.series:
        at = point.at if point.utc_day else point.at.astimezone(zone)
        when = f"{at:{_FORMATS[found.stats.granularity]}}"
        table.add_row(f"{when} UTC" if point.utc_day else when, *_format_point(point, max_clicks))
    make_console().print(table)
    for dimension, breakdown in found.breakdowns.items():
        if [item.value for item in breakdown.items] not in ([], [ABSENT_VALUES.get(dimension)]):
            typer.echo("")
            _print_breakdown(dimension, breakdown)


def _format_point(point: SeriesPoint, max_clicks: int) -> tuple[str, str]:
    return (
        ("no data", "")
        if point.no_data
        else (f"{point.clicks:,}", "▇" * round(_BAR_WIDTH * point.clicks / (max_clicks or 1)))
    )


def _print_breakdown(dimension: str, found: Breakdown) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(dimension, min_width=24)
    table.add_column("clicks", justify="right")
    table.add_column("", justify="right")
    for item in found.items:
        table.add_row(make_safe_text(item.label), f"{item.clicks:,}", f"{item.share:.0%}")
    if found.other:
        table.add_row("other", f"{found.other:,}", f"{found.other / found.total:.0%}")
    make_console().print(table)
