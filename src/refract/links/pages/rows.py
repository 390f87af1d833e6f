"""Links as rows of a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from refract.core.db import ReadSession
from refract.core.lookalikes import ascii_address
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.identity.visitors import Actor
from refract.links import queries
from refract.links.dependencies import who
from refract.links.models import Link
from refract.links.pages.figures import Figures
from refract.links.queries import Card, LinkQuestion


def row(
    card: Card, rt: Runtime, *, stats: bool = True, colors: Mapping[str, str] | None = None, spark: Sequence[int] = ()
) -> dict[str, Any]:
    """A link as a row of a table wants it."""
    out = card.shown(rt.settings.public_url, rt.clock.now())
    return {
        "id": str(out.id),
        "name": out.names[0] if out.names else out.code,
        "more_names": len(out.names) - 1 if len(out.names) > 1 else 0,
        "href": f"/app/links/{out.id}",
        "short_url": out.short_url,
        "destination": ascii_address(out.destination),
        "title": out.title,
        "tags": [{"name": tag, "color": (colors or {}).get(tag)} for tag in out.tags],
        "clicks": (out.total_clicks or 0) if stats else None,
        "spark": list(spark),
        "state": str(out.status),
        "visibility": str(out.visibility),
        "created_at": out.created_at,
    }


async def rows_of(session: ReadSession, rt: Runtime, links: Sequence[Link], *, stats: bool = True) -> list[dict[str, Any]]:
    """A page of links as rows, with the colours of their tags and the clicks of their latest days."""
    cards = await queries.cards_of(session, links)
    colors = await queries.tag_colors(session, {tag for card in cards for tag in card.tags})
    count = rt.part(Figures).sparks
    sparks = await count(session, rt, [link.id for link in links]) if count is not None and stats and links else {}
    return [row(card, rt, stats=stats, colors=colors, spark=sparks.get(card.link.id, ())) for card in cards]


async def newest(rt: Runtime, actor: Actor, count: int) -> list[dict[str, Any]]:
    """My latest links, as rows."""
    async with rt.db.read() as session:
        page = await queries.page_of_links(
            session, Cursors(rt.secret), who(actor), LinkQuestion(), rt.clock.now(), limit=count, cursor=None
        )
        return await rows_of(session, rt, page.items)
