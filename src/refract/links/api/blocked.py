"""Domains that no link may lead to: for administrators."""

from datetime import datetime
from typing import Annotated

from fastapi import Response
from pydantic import Field, StringConstraints
from sqlalchemy import select

from refract.core.schema import Id, Input, Output
from refract.identity.actors import Admin
from refract.identity.errors import AdministratorsOnly
from refract.links import blocking
from refract.links.dependencies import ASKING
from refract.links.safety_errors import DomainNotBlocked, InvalidDomain
from refract.links.safety_models import BlockedDomain
from refract.web.problems import problems
from refract.web.toolkit import IdempotencyKey, Rt, api_router

router = api_router("/admin/blocked-domains", "admin")
_ADMIN = (*ASKING, AdministratorsOnly)


class BlockIn(Input):
    """A domain to block, and why."""

    domain: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)] = Field(examples=["bad.example"])
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = ""


class BlockOut(Output):
    """A blocked domain. Everything below it is blocked too."""

    domain: str
    reason: str
    blocked_by: Id | None
    blocked_at: datetime


class BlockList(Output):
    items: list[BlockOut]
    next_cursor: str | None = None


@router.get("", responses=problems(*_ADMIN))
async def list_blocked(actor: Admin, rt: Rt) -> BlockList:  # noqa: ARG001 - it guards
    """Every blocked domain."""
    async with rt.db.read() as session:
        found = list(await session.scalars(select(BlockedDomain).order_by(BlockedDomain.domain)))
    return BlockList(items=[BlockOut.model_validate(one) for one in found])


@router.post("", status_code=201, responses=problems(*_ADMIN, InvalidDomain))
async def block(wish: BlockIn, actor: Admin, rt: Rt, idempotency_key: IdempotencyKey = None) -> BlockOut:  # noqa: ARG001 - read by the route class
    """Block a domain: its links stop at once, and no new one is made."""
    async with rt.db.write() as session:
        row = await blocking.block_domain(session, wish.domain, reason=wish.reason, by=actor.user.id, at=rt.clock.now())
        return BlockOut.model_validate(row)


@router.delete("/{domain}", status_code=204, responses=problems(*_ADMIN, DomainNotBlocked))
async def unblock(domain: str, actor: Admin, rt: Rt) -> Response:
    """Let links to a domain work again."""
    async with rt.db.write() as session:
        await blocking.unblock_domain(session, domain, by=actor.user.id, at=rt.clock.now())
    return Response(status_code=204)
