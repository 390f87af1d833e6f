"""Links and their names on domains."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from refract.core.db.session import WriteSession
from refract.core.errors import RefractError
from refract.domains.models import Domain
from refract.domains.queries import DomainCaller, lock_usable_domain
from refract.identity.models import User, UserRole
from refract.links.schemas import RedirectStatus
from refract.links.service.new_links import NewLink


async def place_links(
    session: WriteSession, owner: User, new_links: Sequence[NewLink]
) -> list[NewLink | RefractError]:
    """Return the links with what their domains decide, or the reason why one can't live there.

    The domains are locked against their deletion, in one order.
    """
    caller = DomainCaller(owner.id, owner.role == UserRole.ADMIN)
    found: dict[str, Domain | RefractError] = {}
    for host in sorted({new.domain for new in new_links if new.domain}):
        try:
            found[host] = await lock_usable_domain(session, caller, host)
        except RefractError as exc:
            found[host] = exc
    return [new if new.domain is None else _place_link(new, found[new.domain]) for new in new_links]


def _place_link(new: NewLink, domain: Domain | RefractError) -> NewLink | RefractError:
    if isinstance(domain, RefractError) or "redirect_status" in new.given.model_fields_set:
        return domain if isinstance(domain, RefractError) else new
    status = cast("RedirectStatus", domain.default_redirect_status)
    return replace(new, given=new.given.model_copy(update={"redirect_status": status}))
