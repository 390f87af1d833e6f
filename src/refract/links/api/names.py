"""API routes of a link's names, and of the availability of names."""

from typing import Annotated

from fastapi import Path, Query, Request, Response

from refract.core.errors import InvalidStateTransition
from refract.core.schemas import Id
from refract.domains.errors import DomainDisabled, DomainNotAllowed, DomainNotFound
from refract.domains.hosts import to_other_host
from refract.domains.models import MAX_HOST_LENGTH
from refract.domains.queries import load_domain
from refract.identity.dependencies import OptionalReadCaller, WriteCaller
from refract.limits.shared_limits import MissLimit
from refract.links import service
from refract.links.dependencies import Space, charge_code_like_names, load_link_out, to_link_caller
from refract.links.errors import LinkNotFound, NameNotFound, NotOwner, TooManyNames
from refract.links.schemas import LinkOut, NameIn
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.names.schemas import NameAvailability
from refract.web.dependencies import IfMatchHeader, Rt, api_router, parse_if_match
from refract.web.networks import client_network
from refract.web.problems import problems

DomainParam = Annotated[
    str | None,
    Query(
        max_length=MAX_HOST_LENGTH,
        description="The host of the domain of the name. Omitted: the default domain.",
    ),
]
router = api_router("/links/{link_id}/names", "names")
availability_router = api_router("/names", "names")


@router.post(
    "",
    status_code=201,
    responses=problems(
        LinkNotFound,
        NotOwner,
        InvalidStateTransition,
        InvalidSlug,
        SlugReserved,
        SlugTaken,
        TooManyNames,
        DomainNotFound,
        DomainNotAllowed,
        DomainDisabled,
    ),
)
async def add_name(
    link_id: Id,
    body: NameIn,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    if_match: IfMatchHeader = None,
) -> LinkOut:
    """Add a name to a link. One that spells a code counts against the limit of misses."""
    await charge_code_like_names(rt, actor, [body.name])
    async with rt.db.write() as session:
        locked = await service.add_name(
            session,
            space,
            to_link_caller(actor),
            link_id,
            body.name,
            host=to_other_host(rt.settings.public_url, body.domain),
            version=parse_if_match(if_match),
        )
        return await load_link_out(rt, locked)


@router.delete(
    "/{name:path}", status_code=204, responses=problems(LinkNotFound, NameNotFound, NotOwner)
)
async def release_name(
    link_id: Id,
    name: str,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    domain: DomainParam = None,
    if_match: IfMatchHeader = None,
) -> Response:
    """Remove a name from a link, so that anyone can take it, or a code that an import has kept."""
    async with rt.db.write() as session:
        await service.release_name(
            session,
            space,
            to_link_caller(actor),
            link_id,
            name,
            host=to_other_host(rt.settings.public_url, domain),
            version=parse_if_match(if_match),
        )
    return Response(status_code=204)


@availability_router.get("/{name}", responses=problems(DomainNotFound))
async def name_availability(
    name: Annotated[str, Path(max_length=200)],
    request: Request,
    actor: OptionalReadCaller,
    rt: Rt,
    space: Space,
    kind: Annotated[
        NameTarget,
        Query(description="The kind of target. Links and lists have different rules."),
    ] = NameTarget.LINK,
    domain: DomainParam = None,
) -> NameAvailability:
    """Check whether a name is available, and if not, why.

    Open to anonymous callers. Each check counts against the limit of misses.
    """
    await rt.singleton(MissLimit).charge_network(
        client_network(request, rt), actor.user.id if actor else None
    )
    host = to_other_host(rt.settings.public_url, domain)
    async with rt.db.read() as session:
        if host is not None:
            await load_domain(session, host)
        return await names.check_availability(session, space, name, kind, host)
