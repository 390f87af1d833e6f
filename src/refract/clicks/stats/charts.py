"""The chart of the analytics component: its data, the rows of its table, and a picture of it."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from html import escape
from math import ceil
from typing import Any, Final

from refract.clicks.stats.calendar import Granularity
from refract.clicks.stats.results import StatsResult
from refract.identity.time_zones import parse_zone
from refract.web.formats import format_date, format_datetime, format_month
from refract.web.i18n import format_number, gettext

_WIDTH: Final = 960
_HEIGHT: Final = 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 24, 44, 36
_PLOT_WIDTH: Final = _WIDTH - _LEFT - _RIGHT
_PLOT_HEIGHT: Final = _HEIGHT - _TOP - _BOTTOM
_BASE: Final = _HEIGHT - _BOTTOM
_LETTER_WIDTH: Final = 7
_MAX_TICKS: Final = 5
_INK, _FAINT, _LINE, _ACCENT = "#1c1b18", "#6a665c", "#e6e3dd", "#2f4bd6"


def build_chart(found: StatsResult, before: StatsResult | None, now: datetime) -> dict[str, Any]:
    """Return the data of `time_chart` in `components/chart.html`."""
    clicks = [point.clicks for point in found.series]
    series = [{"label": gettext("Clicks"), "values": clicks}]
    if before is not None and before.totals.clicks:
        earlier = [point.clicks for point in before.series][: len(clicks)]
        earlier += [0] * (len(clicks) - len(earlier))
        series.append({"label": gettext("Previous period"), "values": earlier, "look": "dashed"})
    return {
        "at": [int(point.at.timestamp()) for point in found.series],
        "series": series,
        "zone": found.time_zone,
        "by": found.granularity.value,
        "running": found.end + timedelta(minutes=15) > now,
    }


def build_rows(found: StatsResult) -> list[tuple[str, int, int, int]]:
    """Return the series as the rows of a table."""
    zone = parse_zone(found.time_zone)
    return [
        (
            format_point(point.at.astimezone(zone), found.granularity),
            point.clicks,
            point.uniques,
            point.bots,
        )
        for point in found.series
    ]


def format_point(local: datetime, granularity: Granularity) -> str:
    """Format the time of a point of a series."""
    if granularity == Granularity.HOUR:
        return format_datetime(local, parse_zone("UTC") if local.tzinfo is None else local.tzinfo)
    return format_month(local) if granularity == Granularity.MONTH else format_date(local.date())


def draw_chart(chart: dict[str, Any], labels: Sequence[str]) -> str:
    """Return an SVG file of a chart. `labels` are the names of its points."""
    parts = [
        *_draw_axes(chart, labels),
        *(
            part
            for number, line in enumerate(chart["series"])
            for part in _draw_line(line, _find_top(chart), number, is_running=chart["running"])
        ),
        *_draw_legend(chart),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' width="{_WIDTH}" height="{_HEIGHT}" font-family="system-ui, sans-serif" font-size="12">'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def choose_step(highest: int) -> int:
    """Return the distance of the marks of an axis: 1, 2 or 5 times a power of ten."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power * _MAX_TICKS >= highest:
                return digit * power
        power *= 10


def _find_top(chart: dict[str, Any]) -> int:
    highest = max((value for line in chart["series"] for value in line["values"]), default=0)
    step = choose_step(highest)
    return max(step, ceil(highest / step) * step)


def _draw_axes(chart: dict[str, Any], labels: Sequence[str]) -> Iterator[str]:
    top = _find_top(chart)
    step = choose_step(top)
    for value in range(0, top + 1, step):
        y = _place_value(value, top)
        yield f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{_LINE}"/>'
        yield _draw_text(_LEFT - 8, y + 4, format_number(value), "end")
    width = max(map(len, labels), default=0) * _LETTER_WIDTH
    every = max(1, ceil(len(labels) / max(1, _PLOT_WIDTH // (width + 24))))
    for place in range(0, len(labels), every):
        x = _place_point(place, len(labels))
        is_cut = x - width / 2 < 0, x + width / 2 > _WIDTH
        anchor = "start" if is_cut[0] else "end" if is_cut[1] else "middle"
        yield _draw_text(x, _BASE + 20, labels[place], anchor)


def _draw_line(line: dict[str, Any], top: int, number: int, *, is_running: bool) -> Iterator[str]:
    """Draw a series. The way to a point that is not over is dashed, as is a previous period."""
    values = line["values"]
    points = [
        f"{_place_point(place, len(values)):.1f},{_place_value(value, top):.1f}"
        for place, value in enumerate(values)
    ]
    is_previous = line.get("look") == "dashed"
    if not number and len(points) > 1:
        area = f"{_LEFT},{_BASE} {' '.join(points)} {_WIDTH - _RIGHT},{_BASE}"
        yield f'<polygon points="{area}" fill="{_ACCENT}" fill-opacity="0.1"/>'
    if len(points) == 1:
        x, y = points[0].split(",")
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{_FAINT if is_previous else _ACCENT}"/>'
    elif is_previous:
        yield _draw_polyline(points, f'stroke="{_FAINT}" stroke-dasharray="4 4"')
    elif is_running:
        yield _draw_polyline(points[:-1], f'stroke="{_ACCENT}" stroke-width="2"')
        dashed = f'stroke="{_ACCENT}" stroke-width="2" stroke-dasharray="3 4"'
        yield _draw_polyline(points[-2:], dashed)
    else:
        yield _draw_polyline(points, f'stroke="{_ACCENT}" stroke-width="2"')


def _draw_legend(chart: dict[str, Any]) -> Iterator[str]:
    x = _LEFT
    for line in chart["series"]:
        is_previous = line.get("look") == "dashed"
        look = (
            f'stroke="{_FAINT}" stroke-dasharray="4 4"'
            if is_previous
            else f'stroke="{_ACCENT}" stroke-width="2"'
        )
        yield f'<path d="M{x} 20h20" {look}/>'
        yield _draw_text(x + 28, 24, line["label"], "start", _INK)
        x += 52 + len(line["label"]) * (_LETTER_WIDTH + 1)


def _draw_polyline(points: Sequence[str], look: str) -> str:
    return f'<polyline points="{" ".join(points)}" fill="none" stroke-linejoin="round" {look}/>'


def _draw_text(x: float, y: float, text: str, anchor: str, ink: str = _FAINT) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{ink}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _place_point(place: int, count: int) -> float:
    return _LEFT + (_PLOT_WIDTH * place / (count - 1) if count > 1 else _PLOT_WIDTH / 2)


def _place_value(value: int, top: int) -> float:
    return _BASE - _PLOT_HEIGHT * value / top
