"""Queries of click limits."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import BindParameter, bindparam, select

from refract.core.db.bulk import iter_batches
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.links.limits.models import LinkLimit


async def load_taken_clicks(session: ReadSession, link_ids: Collection[int]) -> dict[int, int]:
    """Return how many redirects each link has taken from its limit, without those with none."""
    found: dict[int, int] = {}
    for batch in iter_batches(sorted(link_ids)):
        rows = await session.fetch(_TAKEN, link_ids=batch)
        found |= {link_id: taken for link_id, taken in rows}  # noqa: C416 - typed rows
    return found


_LINK_IDS: BindParameter[Any] = bindparam("link_ids", expanding=True)
_TAKEN = PreparedSelect(
    lambda: select(LinkLimit.link_id, LinkLimit.taken).where(LinkLimit.link_id.in_(_LINK_IDS))
)
