"""Our objects in Kutt's words. Pure."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from refract.clicks.stats.results import LinkDashboard
from refract.compat.kutt.errors import InvalidKuttExpiry
from refract.compat.short_links import get_short_code
from refract.links.enums import LinkState, Visibility
from refract.links.queries import LinkCard
from refract.names.grammar import build_short_url

_LOW_BITS = 62
_VERSION, _VARIANT = 8 << 76, 0b10 << _LOW_BITS
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([a-z]*)", re.IGNORECASE)
_UNITS = (
    (("ms", "msec", "msecs", "millisecond", "milliseconds", ""), timedelta(milliseconds=1)),
    (("s", "sec", "secs", "second", "seconds"), timedelta(seconds=1)),
    (("m", "min", "mins", "minute", "minutes"), timedelta(minutes=1)),
    (("h", "hr", "hrs", "hour", "hours"), timedelta(hours=1)),
    (("d", "day", "days"), timedelta(days=1)),
    (("w", "week", "weeks"), timedelta(weeks=1)),
    (("y", "yr", "yrs", "year", "years"), timedelta(days=365.25)),
)
_PANELS = {"browser": "browsers", "os": "systems", "country": "countries", "referrer": "referrers"}


def build_uuid(link_id: int) -> str:
    """Return an id as a UUID of version 8, from which `parse_uuid` reads it again."""
    high, low = divmod(link_id, 1 << _LOW_BITS)
    return str(UUID(int=high << 80 | _VERSION | _VARIANT | low))


def parse_uuid(text: str) -> int | None:
    """Return the id in a UUID that `build_uuid` made, else None."""
    try:
        number = UUID(text).int
    except ValueError:
        return None
    link_id = (number >> 80 << _LOW_BITS) | number & ((1 << _LOW_BITS) - 1)
    return link_id if link_id < 1 << 63 and build_uuid(link_id) == text.lower() else None


def parse_duration(text: str) -> timedelta:
    """Return a time to live like `2 days` or `8h`. Raises `InvalidKuttExpiry`."""
    found = _DURATION.fullmatch(text.strip())
    unit = found and next((size for names, size in _UNITS if found[2].lower() in names), None)
    if not found or not unit:
        raise InvalidKuttExpiry
    try:
        duration: timedelta = float(found[1]) * unit
    except OverflowError as exc:
        raise InvalidKuttExpiry from exc
    if not timedelta(minutes=1) <= duration <= timedelta(days=36_525):
        raise InvalidKuttExpiry
    return duration


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def build_link(card: LinkCard, base_url: str) -> dict[str, Any]:
    link = card.link
    return {
        "id": build_uuid(link.id),
        "address": get_short_code(card),
        "banned": link.status == LinkState.DISABLED and link.disabled_by_admin,
        "created_at": format_time(link.created_at),
        "updated_at": format_time(link.updated_at),
        "password": link.effective_visibility == Visibility.PASSWORD,
        "description": link.notes,
        "expire_in": None if link.expires_at is None else format_time(link.expires_at),
        "target": link.destination,
        "visit_count": card.totals.people,
        "domain": link.domain,
        "link": build_short_url(base_url, card.text),
    }


def build_period(found: LinkDashboard, points: int) -> dict[str, Any]:
    """Return the statistics of a period whose series has this many points at its end."""
    views: Sequence[int] = [point.clicks for point in found.stats.series][-points:]
    return {
        "stats": {
            panel: [
                {"name": share.value.lower(), "value": share.clicks}
                for share in found.breakdowns[name].items
            ]
            for panel, name in _PANELS.items()
        },
        "views": [0] * (points - len(views)) + list(views),
        "total": found.stats.totals.clicks,
    }
