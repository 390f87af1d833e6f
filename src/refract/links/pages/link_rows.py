"""Links as rows of a table."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from refract.core.db.session import ReadSession
from refract.core.lookalikes import to_ascii_url
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.links import queries
from refract.links.dependencies import to_link_caller
from refract.links.models import Link
from refract.links.queries import LinkCard, LinkFilter
from refract.links.schemas import LinkOut
from refract.names.grammar import build_short_url, format_name


@dataclass(frozen=True, slots=True)
class LinkStatsSource:
    """What the pages show of clicks beyond totals. `refract.registry` names who counts them."""

    load_link_stats: Callable[[Request, Runtime, Caller, LinkOut], Awaitable[dict[str, Any]]]
    """Return the context of `link_figures` in `links/_analytics.html`."""
    load_sparklines: Callable[
        [ReadSession, Runtime, Sequence[int]], Awaitable[dict[int, list[int]]]
    ]
    """Return clicks per day of each link, oldest day first."""
    count_rules: Callable[[Runtime, int], Awaitable[Mapping[str, int]]]
    """Return the clicks of the last 30 days by the rule of a link that decided, by number."""


SavedItemFinder = Callable[[ReadSession, int, str], Awaitable[list[dict[str, str]]]]
"""Return the user's library items of a URL: `id` and `title`. `refract.registry` names it."""


async def find_saved_items(
    request: Request, session: ReadSession, actor: Caller, link: Link
) -> list[dict[str, str]]:
    find: SavedItemFinder = request.app.state.find_saved_items
    return await find(session, actor.user.id, link.destination)


def get_stats_source(request: Request) -> LinkStatsSource:
    """Return the source that the app was composed with."""
    source: LinkStatsSource = request.app.state.link_stats
    return source


def build_row(
    card: LinkCard,
    rt: Runtime,
    *,
    stats: bool = True,
    colors: Mapping[str, str] | None = None,
    spark: Sequence[int] = (),
) -> dict[str, Any]:
    """Return a link as the context of `link_row` in `links/_row.html`."""
    link = card.link
    return {
        "id": str(link.id),
        "name": card.name,
        "address": format_name(card.text),
        "more_names": len(card.names) - 1 if len(card.names) > 1 else 0,
        "href": f"/app/links/{link.id}",
        "short_url": build_short_url(rt.settings.public_url, card.text),
        "destination": to_ascii_url(link.destination),
        "title": link.title,
        "tags": [{"name": tag, "color": (colors or {}).get(tag)} for tag in card.tags],
        "clicks": card.totals.people if stats else None,
        "spark": list(spark),
        "state": str(link.state_at(rt.clock.now())),
        "clicks_left": card.clicks_left,
        "scheduled": link.is_scheduled_at(rt.clock.now()),
        "visibility": str(link.effective_visibility),
        "created_at": link.created_at,
        "updated_at": link.updated_at,
        "last_click_at": card.totals.last_at if stats else None,
    }


async def load_rows(
    session: ReadSession,
    rt: Runtime,
    source: LinkStatsSource,
    links: Sequence[Link],
    *,
    stats: bool = True,
) -> list[dict[str, Any]]:
    """Return links as rows, with the colours of their tags and the clicks of recent days."""
    cards = await queries.load_cards(session, links)
    colors = await queries.load_tag_colors(session, {tag for card in cards for tag in card.tags})
    sparks = (
        await source.load_sparklines(session, rt, [link.id for link in links])
        if stats and links
        else {}
    )
    return [
        build_row(card, rt, stats=stats, colors=colors, spark=sparks.get(card.link.id, ()))
        for card in cards
    ]


async def load_newest_rows(
    rt: Runtime, actor: Caller, source: LinkStatsSource, count: int
) -> list[dict[str, Any]]:
    """Return the caller's newest links as rows."""
    async with rt.db.read() as session:
        page = await queries.load_links_page(
            session,
            CursorCodec(rt.secret),
            to_link_caller(actor),
            LinkFilter(),
            rt.clock.now(),
            limit=count,
            cursor=None,
        )
        return await load_rows(session, rt, source, page.items)
