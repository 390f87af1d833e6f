"""Disable, enable, renew, undo."""

from refract.core.errors import InvalidStateTransition, NothingToUndo, Stale
from refract.core.schema import Id
from refract.identity.actors import Writer
from refract.links import service
from refract.links.dependencies import ASKING, Space, shown, who
from refract.links.errors import LinkNotFound, NotYours, OnlyAdministrators, PastExpiry, RenewalNeeded
from refract.links.schemas import LinkOut, Renewal
from refract.web.problems import problems
from refract.web.toolkit import BadEtag, IdempotencyKey, IfMatch, Rt, api_router, expected_version

router = api_router("/links/{link_id}", "links")
_LIFE = (*ASKING, LinkNotFound, NotYours, Stale, BadEtag, InvalidStateTransition)


@router.post("/disable", responses=problems(*_LIFE))
async def disable_link(link_id: Id, actor: Writer, rt: Rt, if_match: IfMatch = None, idempotency_key: IdempotencyKey = None) -> LinkOut:  # noqa: ARG001 - read by the route class
    """Stop a link: it answers 410 everywhere within a second."""
    async with rt.db.write() as session:
        held = await service.disable_link(session, who(actor), link_id, rt.clock.now(), version=expected_version(if_match))
        return await shown(rt, held)


@router.post("/enable", responses=problems(*_LIFE, OnlyAdministrators, RenewalNeeded))
async def enable_link(link_id: Id, actor: Writer, rt: Rt, if_match: IfMatch = None, idempotency_key: IdempotencyKey = None) -> LinkOut:  # noqa: ARG001 - read by the route class
    """Let a disabled link redirect again. What an administrator disabled, only an administrator enables."""
    async with rt.db.write() as session:
        held = await service.enable_link(session, who(actor), link_id, rt.clock.now(), version=expected_version(if_match))
        return await shown(rt, held)


@router.post("/renew", responses=problems(*_LIFE, PastExpiry))
async def renew_link(
    link_id: Id,
    actor: Writer,
    rt: Rt,
    renewal: Renewal | None = None,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,  # noqa: ARG001 - read by the route class
) -> LinkOut:
    """Give a link a new expiry, or none."""
    until = renewal.expires_at if renewal else None
    async with rt.db.write() as session:
        held = await service.renew_link(session, who(actor), link_id, rt.clock.now(), until, version=expected_version(if_match))
        return await shown(rt, held)


@router.post("/undo", responses=problems(*_LIFE, NothingToUndo, OnlyAdministrators))
async def undo(link_id: Id, actor: Writer, rt: Rt, space: Space, idempotency_key: IdempotencyKey = None) -> LinkOut:  # noqa: ARG001 - read by the route class
    """Take back the latest delete, disable or edit, within 24 hours."""
    async with rt.db.write() as session:
        held = await service.undo(session, space, who(actor), link_id)
        return await shown(rt, held)
