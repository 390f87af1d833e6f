"""API routes of blocked domains, for administrators."""

from datetime import datetime
from typing import Annotated

from fastapi import Response
from pydantic import Field, StringConstraints

from refract.core.schemas import Id, InputSchema, OutputSchema
from refract.identity.dependencies import AdminCaller
from refract.links.safety import blocked_domains
from refract.links.safety.errors import DomainNotBlocked, InvalidDomain
from refract.web.dependencies import Rt, api_router
from refract.web.problems import problems

router = api_router("/admin/blocked-domains", "admin")


class BlockedDomainIn(InputSchema):
    """A domain to block, and why."""

    domain: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)
    ] = Field(examples=["bad.example"])
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = ""


class BlockedDomainOut(OutputSchema):
    """A blocked domain. Its subdomains are blocked too."""

    domain: str
    reason: str
    blocked_by: Id | None
    blocked_at: datetime


class BlockedDomainPage(OutputSchema):
    items: list[BlockedDomainOut]
    next_cursor: str | None = None


@router.get("")
async def list_blocked(actor: AdminCaller, rt: Rt) -> BlockedDomainPage:  # noqa: ARG001 - a guard
    """List all blocked domains."""
    async with rt.db.read() as session:
        found = await blocked_domains.list_blocked_domains(session)
    return BlockedDomainPage(items=[BlockedDomainOut.model_validate(domain) for domain in found])


@router.post("", status_code=201, responses=problems(InvalidDomain))
async def block(body: BlockedDomainIn, actor: AdminCaller, rt: Rt) -> BlockedDomainOut:
    """Block a domain. Links to it stop immediately, and new ones are rejected."""
    async with rt.db.write() as session:
        row = await blocked_domains.block_domain(
            session, body.domain, reason=body.reason, by=actor.user.id, at=rt.clock.now()
        )
        return BlockedDomainOut.model_validate(row)


@router.delete("/{domain}", status_code=204, responses=problems(DomainNotBlocked))
async def unblock(domain: str, actor: AdminCaller, rt: Rt) -> Response:
    """Unblock a domain. Links to it work again."""
    async with rt.db.write() as session:
        await blocked_domains.unblock_domain(session, domain, by=actor.user.id, at=rt.clock.now())
    return Response(status_code=204)
