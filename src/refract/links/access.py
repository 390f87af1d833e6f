"""Visibility of links and each user's access to them; rights follow from `identity.access`.

A link that a user may not see does not exist for them: the error is the same as for an unknown id.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, false, not_, or_, select, true

from refract.core.db.session import ReadSession
from refract.identity.access import AccessRelation, AccessRight, is_allowed
from refract.links.errors import LinkNotFound, NotOwner
from refract.links.models import Link, LinkOwner, LinkShare, LinkState, Visibility


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

        `LinkNotFound` if they may not see the link, else `NotYours`.
        """
        if not self.allows(right):
            raise NotOwner if self.allows(AccessRight.VIEW) else LinkNotFound


async def load_access(session: ReadSession, caller: LinkCaller, link: Link) -> LinkAccess:
    """Return a user's access to a link, in one query, by the same condition that lists use."""
    mine = and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == caller.user_id)
    query = select(
        LinkOwner.primary_link_id,
        is_owned_by(caller.user_id),
        is_shared_with(caller.user_id),
        is_visible_to(caller),
    ).select_from(Link)
    found = await session.execute(query.outerjoin(LinkOwner, mine).where(Link.id == link.id))
    primary, owns, shared, visible = found.one()
    if caller.is_admin:
        relation = AccessRelation.ADMIN
    elif owns:
        relation = AccessRelation.CO_OWNER if primary is None else AccessRelation.PRIMARY
    else:
        relation = AccessRelation.RECIPIENT if shared else AccessRelation.SIGNED_IN
    return LinkAccess(relation, owns=bool(owns), visible=bool(visible))


def is_owned_by(user_id: int) -> ColumnElement[bool]:
    return (
        select(LinkOwner.link_id)
        .where(LinkOwner.link_id == Link.id, LinkOwner.user_id == user_id)
        .correlate(Link)
        .exists()
    )


def is_shared_with(user_id: int) -> ColumnElement[bool]:
    return (
        select(LinkShare.link_id)
        .where(LinkShare.link_id == Link.id, LinkShare.user_id == user_id)
        .correlate(Link)
        .exists()
    )


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
