"""Published lists, for everybody."""

from typing import Annotated

from fastapi import Path, Query, Request, Response

from refract.core.errors import Unavailable
from refract.limits.errors import RateLimited
from refract.limits.service import MissLimit
from refract.lists import queries
from refract.lists.edge import shown_lines
from refract.lists.errors import ListNotFound, ListUnavailable
from refract.lists.public import robots_headers
from refract.lists.schemas import PublicList
from refract.lists.shown import public
from refract.web.networks import client_network
from refract.web.problems import ValidationFailed, problems
from refract.web.toolkit import Rt, api_router

router = api_router("/public/lists", "lists")


@router.get("/{slug}", responses=problems(ListNotFound, ListUnavailable, RateLimited, ValidationFailed, Unavailable))
async def read_public_list(
    slug: Annotated[str, Path(max_length=200)],
    request: Request,
    rt: Rt,
    response: Response,
    edition: Annotated[int | None, Query(ge=1, le=1_000_000, description="An older edition; left out: the latest.")] = None,
) -> PublicList:
    """A published list by its name. Open to strangers."""
    async with rt.db.read() as session:
        found = await queries.published(session, slug, edition)
        if found is None:
            await rt.part(MissLimit).charge_network(client_network(request, rt))
            raise ListNotFound
        if found.seen.found.on_hold:
            raise ListUnavailable
        shown = await shown_lines(session, rt, found.seen.found.id, found.seen.epoch)
    response.headers.update(robots_headers(found.seen.found))
    return public(found.seen.found, found.latest, shown, rt.settings.public_url)
