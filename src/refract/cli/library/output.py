"""Items on a terminal."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from refract.cli.common import InvalidValue
from refract.cli.tables import format_time, make_console, make_safe_text
from refract.core.schemas import parse_id
from refract.core.text import make_excerpt
from refract.library.models import READING_STATES, ItemStatus, SuggestionStatus
from refract.library.schemas import ItemOut

ItemArgument = Annotated[str, typer.Argument(help="Id of an item.", metavar="ID")]
STATUS_STYLES = {
    ItemStatus.ENRICHING: ("fetching", "cyan"),
    ItemStatus.READY_TO_CONFIRM: ("ready to review", "green"),
    ItemStatus.FAILED: ("failed", "red"),
    ItemStatus.ARCHIVED: ("saved", "green"),
    ItemStatus.DISCARDED: ("discarded", "yellow"),
}


def parse_item_id(typed: str) -> int:
    try:
        return parse_id(typed)
    except ValueError as exc:
        raise InvalidValue(
            problem=(
                f'"{make_excerpt(typed, 80)}" is not the id of an item. List them with: refract'
                " library list"
            )
        ) from exc


def print_items(items: Sequence[ItemOut]) -> None:
    table = _build_table("id", "title", "from", "tags", "date")
    for item in items:
        tags = ", ".join(tag.name for tag in item.tags)
        table.add_row(
            str(item.id),
            make_safe_text(_get_title(item), style="bold"),
            make_safe_text(_get_host(item)),
            make_safe_text(tags),
            f"{item.confirmed_at or item.created_at:%Y-%m-%d}",
        )
    make_console().print(table)


def print_queue(items: Sequence[ItemOut]) -> None:
    table = _build_table("id", "state", "title", "from", "suggested tags")
    for item in items:
        label, color = STATUS_STYLES[item.status]
        suggested = (
            item.failure if item.status is ItemStatus.FAILED else ", ".join(_list_suggestions(item))
        )
        table.add_row(
            str(item.id),
            Text(label, style=color),
            make_safe_text(_get_title(item), style="bold"),
            make_safe_text(_get_host(item)),
            make_safe_text(suggested),
        )
    make_console().print(table)


def print_item(item: ItemOut) -> None:
    """Print everything about an item."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    label, color = STATUS_STYLES[item.status]
    rows = {
        "title": item.title,
        "URL": item.url,
        "text": None if item.url else item.text,
        "summary": item.summary,
        "notes": item.notes,
        "tags": ", ".join(tag.name for tag in item.tags),
        "suggested tags": ", ".join(_list_suggestions(item, reasons=True)),
    }
    for heading, text in rows.items():
        if text:
            table.add_row(heading, make_safe_text(text, 10_000))
    table.add_row(
        "state",
        Text(
            f"{label}{f': {make_excerpt(item.failure, 300)}' if item.failure else ''}", style=color
        ),
    )
    if states := [name for name in READING_STATES if getattr(item, name)]:
        table.add_row("marked", ", ".join(states))
    table.add_row("created", format_time(item.created_at))
    if item.confirmed_at:
        table.add_row("saved", format_time(item.confirmed_at))
    if item.duplicate_of:
        table.add_row("duplicate of", str(item.duplicate_of))
    table.add_row("id", f"{item.id} (version {item.version})")
    make_console().print(table)


def _build_table(*headings: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(
            heading,
            no_wrap=True,
            overflow="ellipsis",
            min_width=len(str(1 << 62)) if heading == "id" else None,
        )
    return table


def _get_title(item: ItemOut) -> str:
    return item.title or " ".join(item.text.split())


def _get_host(item: ItemOut) -> str:
    return (
        item.url.partition("://")[2].partition("/")[0].partition("?")[0].removeprefix("www.")
        if item.url
        else "note"
    )


def _list_suggestions(item: ItemOut, *, reasons: bool = False) -> list[str]:
    pending = [tag for tag in item.suggestions if tag.status is SuggestionStatus.PENDING]
    return [
        f"{tag.name} ({tag.confidence:.0%}, {tag.reason})" if reasons else tag.name
        for tag in pending
    ]
