"""Links as a file: CSV, a JSON document or JSON lines. `links/imports` reads all of them."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from refract.core.clock import format_utc
from refract.core.runtime import Runtime
from refract.core.text import escape_formula
from refract.links.preview_cards import parse_card
from refract.links.qr_styles import parse_style
from refract.links.queries import LinkCard, list_links_after, load_cards
from refract.links.rules.document import parse_rules
from refract.names.grammar import format_name, split_name

PAGE_SIZE = 200
COLUMNS = (
    "id",
    "code",
    "domain",
    "names",
    "other_names",
    "kept_codes",
    "destination",
    "title",
    "notes",
    "tags",
    "status",
    "visibility",
    "redirect_status",
    "forward_query",
    "noindex",
    "expires_at",
    "expired_destination",
    "starts_at",
    "before_destination",
    "rules",
    "preview_card",
    "click_limit",
    "clicks_left",
    "limit_destination",
    "qr_style",
    "created_at",
    "team",
    "owners",
    "clicks",
)
SEPARATOR = "|"
"""Separates names, tags or owners within a cell; none of them contains it."""


class LinkExportFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"


async def iter_card_pages(
    rt: Runtime, user_id: int | None = None
) -> AsyncIterator[Sequence[LinkCard]]:
    """Yield all links that are not deleted, or one owner's, oldest first.

    Each page is a query of its own, so nothing is locked for long.
    """
    last = -1
    while True:
        async with rt.db.read() as session:
            links = await list_links_after(session, last, PAGE_SIZE, user_id=user_id)
            cards = await load_cards(session, links)
        if not links:
            return
        last = links[-1].id
        yield cards


def build_record(card: LinkCard, now: datetime) -> dict[str, Any]:
    """Return all fields of a link for a file.

    `domain` is empty for the default domain. `other_names` are those on other domains, with hosts,
    `kept_codes` the codes that imports have kept.
    """
    link, preview = card.link, parse_card(card.link.preview_card)
    style = parse_style(link.qr_style)
    return {
        "id": str(link.id),
        "code": link.code,
        "domain": link.domain,
        "names": card.own_names,
        "other_names": [
            format_name(name) for name in card.names if split_name(name)[0] != (link.domain or "")
        ],
        "kept_codes": card.kept_codes,
        "destination": link.destination,
        "title": link.title,
        "notes": link.notes,
        "tags": list(card.tags),
        "status": link.own_state_at(now).value,
        "visibility": link.effective_visibility.value,
        "redirect_status": link.redirect_status,
        "forward_query": link.forward_query,
        "noindex": bool(link.noindex),
        "expires_at": _format_time(link.expires_at),
        "expired_destination": link.expired_destination,
        "starts_at": _format_time(link.starts_at),
        "before_destination": link.before_destination,
        "rules": _build_rules(link.rules),
        "preview_card": preview.to_json() if preview is not None else None,
        "click_limit": link.click_limit,
        "clicks_left": card.clicks_left,
        "limit_destination": link.limit_destination,
        "qr_style": style.to_json() if style is not None else None,
        "created_at": _format_time(link.created_at),
        "team": next((team.slug for team in card.teams if team.primary), None),
        "owners": [owner.email for owner in card.owners],
        "clicks": card.totals.people,
    }


def _build_rules(column: str | None) -> list[dict[str, Any]]:
    return [
        {"destination": rule.destination, "conditions": rule.conditions}
        for rule in parse_rules(column)
    ]


class LinkExportWriter:
    """Writes a file in pieces: `head`, then `page` for each page of links, then `tail`."""

    def __init__(self, form: LinkExportFormat) -> None:
        self._format = form
        self._first = True

    def head(self) -> str:
        if self._format is LinkExportFormat.CSV:
            return _format_rows([COLUMNS])
        return '{"links": [' if self._format is LinkExportFormat.JSON else ""

    def page(self, records: Iterable[dict[str, Any]]) -> str:
        if self._format is LinkExportFormat.CSV:
            return _format_rows(
                [[_format_cell(record[column]) for column in COLUMNS] for record in records]
            )
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        if self._format is LinkExportFormat.JSONL:
            return "".join(f"{line}\n" for line in lines)
        return "".join(self._elements(lines))

    def tail(self) -> str:
        return "\n]}\n" if self._format is LinkExportFormat.JSON else ""

    def _elements(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            yield f"\n{line}" if self._first else f",\n{line}"
            self._first = False


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, list):
        return escape_formula(str(value))
    if value and not isinstance(value[0], str):
        return json.dumps(value, ensure_ascii=False)
    return escape_formula(SEPARATOR.join(value))


def _format_rows(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _format_time(moment: datetime | None) -> str | None:
    return format_utc(moment) if moment else None
