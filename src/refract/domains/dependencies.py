"""FastAPI dependencies of domains."""

from typing import Annotated

from fastapi import Depends, Request

from refract.domains.hooks import DomainHooks
from refract.domains.queries import DomainCaller
from refract.identity.authentication import Caller


async def _get_domain_hooks(request: Request) -> DomainHooks:
    hooks: DomainHooks = request.app.state.domain_hooks
    return hooks


Hooks = Annotated[DomainHooks, Depends(_get_domain_hooks)]
"""What other features do when domains change, as `refract.registry` names it."""


def to_domain_caller(actor: Caller) -> DomainCaller:
    """Return the caller of a request as the queries of domains know it."""
    return DomainCaller(actor.user.id, actor.is_admin)
