"""Visibility of links and each user's access to them; rights follow from `identity.access`.

A link that a user may not see does not exist for them: the error is the same as for an unknown id.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    false,
    func,
    not_,
    or_,
    select,
    true,
)

from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession
from refract.identity.access import AccessRelation, AccessRight, is_allowed
from refract.links.enums import LinkState, Visibility
from refract.links.errors import LinkNotFound, NotOwner, PrimaryOwnerRequired
from refract.links.models import Link, LinkOwner, LinkShare, LinkTeam
from refract.teams.models import TeamMember, TeamRole


@dataclass(frozen=True, slots=True)
class LinkCaller:
    """A signed-in user, and whether this request has an administrator's rights."""

    user_id: int
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class LinkAccess:
    """A user's access to a link. `as_admin`: only an administrator's rights allow it."""

    relation: AccessRelation
    owns: bool
    visible: bool = True
    """Whether `is_visible_to` matches the link."""

    @property
    def as_admin(self) -> bool:
        return self.relation == AccessRelation.ADMIN and not self.owns

    def allows(self, right: AccessRight) -> bool:
        return self.visible and (right == AccessRight.VIEW or is_allowed(self.relation, right))

    def require(self, right: AccessRight) -> None:
        """Raise an error if the user may not do this.

        `LinkNotFound` if they may not see the link, `PrimaryOwnerRequired` if they co-own it, else
        `NotOwner`.
        """
        if self.allows(right):
            return
        if not self.allows(AccessRight.VIEW):
            raise LinkNotFound
        raise PrimaryOwnerRequired if self.owns else NotOwner


async def load_access(session: ReadSession, caller: LinkCaller, link: Link) -> LinkAccess:
    """Return a user's access to a link, in one query, by the same condition that lists use."""
    values = {"link_id": link.id, "user_id": caller.user_id}
    ((primary, owns, shared, visible),) = await session.fetch(_ACCESS[caller.is_admin], **values)
    return _build_access(caller, primary, owns=owns, shared=shared, visible=visible)


async def load_link_with_access(
    session: ReadSession, caller: LinkCaller, link_id: int
) -> tuple[Link, LinkAccess] | None:
    """Return a link and a user's access to it like `load_access`, in one query."""
    values = {"link_id": link_id, "user_id": caller.user_id}
    found = await session.fetch(_LINK_WITH_ACCESS[caller.is_admin], **values)
    if not found:
        return None
    link, primary, owns, shared, visible = found[0]
    return link, _build_access(caller, primary, owns=owns, shared=shared, visible=visible)


def _build_access(
    caller: LinkCaller, primary: int | None, *, owns: bool, shared: bool, visible: bool
) -> LinkAccess:
    if caller.is_admin:
        relation = AccessRelation.ADMIN
    elif owns:
        relation = AccessRelation.CO_OWNER if primary is None else AccessRelation.PRIMARY
    else:
        relation = AccessRelation.RECIPIENT if shared else AccessRelation.SIGNED_IN
    return LinkAccess(relation, owns=bool(owns), visible=bool(visible))


def _select_access(*entities: type[Link], is_admin: bool) -> Select[*tuple[Any, ...]]:
    """Select the access of the user `user_id` to the link `link_id`, after these entities."""
    user_id = cast("int", bindparam("user_id", type_=BigInteger()))
    mine = and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == user_id)
    query = select(
        *entities,
        func.coalesce(LinkOwner.primary_link_id, _select_managed(user_id)),
        is_owned_by(user_id),
        is_shared_with(user_id),
        is_visible_to(LinkCaller(user_id, is_admin)),
    ).select_from(Link)
    return query.outerjoin(LinkOwner, mine).where(Link.id == bindparam("link_id"))


def _select_managed(user_id: int) -> ScalarSelect[int]:
    """Select the id of a link whose primary owner is a team that a user manages, else NULL."""
    member = and_(
        TeamMember.team_id == LinkTeam.team_id,
        TeamMember.user_id == user_id,
        TeamMember.role == TeamRole.MANAGER,
    )
    managed = select(LinkTeam.link_id).join(TeamMember, member)
    return managed.where(LinkTeam.primary_link_id == Link.id).correlate(Link).scalar_subquery()


_ACCESS = {
    is_admin: PreparedSelect(partial(_select_access, is_admin=is_admin))
    for is_admin in (False, True)
}
_LINK_WITH_ACCESS = {
    is_admin: PreparedSelect(partial(_select_access, Link, is_admin=is_admin))
    for is_admin in (False, True)
}


def is_owned_by(user_id: int) -> ColumnElement[bool]:
    """Return the condition for links of a user, also as a member of a team.

    Not with EXISTS: PostgreSQL would read all links of the user to look at some.
    """
    row = select(LinkOwner.link_id).where(
        LinkOwner.link_id == Link.id, LinkOwner.user_id == user_id
    )
    return row.correlate(Link).scalar_subquery().is_not(None)


def is_direct_owner() -> ColumnElement[bool]:
    """Return the condition for rows of owners that are more than members of an owning team."""
    return LinkOwner.through_team.is_not(true())


def is_shared_with(user_id: int) -> ColumnElement[bool]:
    """Return the condition for links that are shared with a user."""
    row = select(LinkShare.link_id).where(
        LinkShare.link_id == Link.id, LinkShare.user_id == user_id
    )
    return row.correlate(Link).scalar_subquery().is_not(None)


def is_visible_to(caller: LinkCaller | None) -> ColumnElement[bool]:
    """Return the condition for links that a user may see, in lists and by id.

    Anonymous callers see none. A user sees their own links, and of those that are neither
    deleted nor on hold the public ones and the ones shared with them.
    """
    if caller is None:
        return false()
    if caller.is_admin:
        return true()
    others = or_(Link.visibility == Visibility.PUBLIC, is_shared_with(caller.user_id))
    return or_(
        is_owned_by(caller.user_id),
        and_(Link.status != LinkState.DELETED, not_(Link.on_hold), others),
    )
