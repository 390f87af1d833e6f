"""Our objects in Shlink's words. Pure."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from refract.clicks.stats.newest import COLUMN_INDEXES
from refract.compat.pagination import MAX_NUMBER, NumberedPage, dump_json
from refract.compat.short_links import get_short_code
from refract.domains.models import Domain
from refract.links.enums import Visibility
from refract.links.queries import LinkCard
from refract.links.queries.numbered import ClickSums, TagSum
from refract.names.grammar import build_short_url as build_url

SHLINK_VERSION = "4.6.0"
"""The version whose features the answers have; clients show what it has."""


def format_time(moment: datetime) -> str:
    """Return a time with seconds and a numeric offset, never `Z`: clients cut it by position."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def build_summary(people: int, bots: int) -> dict[str, int]:
    return {"total": people + bots, "nonBots": people, "bots": bots}


def build_sums(sums: ClickSums) -> dict[str, int]:
    return build_summary(sums.people, sums.bots)


def build_short_url(card: LinkCard, base_url: str) -> dict[str, Any]:
    link = card.link
    start, expiry = link.starts_at, link.expires_at
    return {
        "shortCode": get_short_code(card),
        "shortUrl": build_url(base_url, card.text),
        "longUrl": link.destination,
        "dateCreated": format_time(link.created_at),
        "tags": list(card.tags),
        "meta": {
            "validSince": None if start is None else format_time(start),
            "validUntil": None if expiry is None else format_time(expiry),
            "maxVisits": link.click_limit,
        },
        "domain": link.domain,
        "title": link.title,
        "crawlable": link.effective_visibility == Visibility.PUBLIC,
        "forwardQuery": link.forward_query,
        "hasRedirectRules": False,
        "visitsSummary": build_summary(card.totals.people, card.totals.bots),
    }


def build_domain(domain: Domain) -> dict[str, Any]:
    """Return a domain other than the default one. Links that are gone lead nowhere in Shlink."""
    return {
        "domain": domain.host,
        "isDefault": False,
        "redirects": {
            "baseUrlRedirect": domain.root_destination,
            "regular404Redirect": domain.unknown_destination,
            "invalidShortUrlRedirect": domain.gone_destination,
        },
    }


def build_visit(event: Sequence[Any], short_urls: dict[int, str]) -> dict[str, Any]:
    """Return a click. The network of the visitor is not told."""

    def get(name: str) -> Any:
        return event[COLUMN_INDEXES[name]]

    return {
        "referer": get("referrer") or "",
        "date": format_time(get("at")),
        "userAgent": get("user_agent") or "",
        "potentialBot": bool(get("bot")),
        "visitLocation": _build_location(get) if get("country_code") else None,
        "visitedUrl": short_urls.get(get("target_id"), ""),
        "redirectUrl": None,
    }


def _build_location(get: Any) -> dict[str, Any]:
    return {
        "countryCode": get("country_code"),
        "countryName": get("country") or "",
        "regionName": "",
        "cityName": get("city") or "",
        "latitude": get("latitude") or 0.0,
        "longitude": get("longitude") or 0.0,
        "timezone": "",
        "isEmpty": False,
    }


def build_tag_stats(tag: TagSum) -> dict[str, Any]:
    return {
        "tag": tag.name,
        "shortUrlsCount": tag.links,
        "visitsCount": tag.clicks.people + tag.clicks.bots,
        "visitsSummary": build_sums(tag.clicks),
    }


def build_pagination(page: NumberedPage, total: int) -> dict[str, int]:
    return {
        "currentPage": page.offset // page.limit + 1,
        "pagesCount": max(1, math.ceil(total / page.limit)),
        "itemsPerPage": min(page.limit, max(total, 1)) if page.limit == MAX_NUMBER else page.limit,
        "itemsInCurrentPage": page.count_items(total),
        "totalItems": total,
    }


def enclose_list(name: str, page: NumberedPage, total: int) -> dict[str, str]:
    """Return the text before and after the objects of a list."""
    pagination = dump_json(build_pagination(page, total))
    return {"head": f'{{"{name}":{{"data":[', "tail": f'],"pagination":{pagination}}}}}'}
