"""Who may see a link, and how a user stands to it; what that allows is in the one table of `identity.access`.

A link that a user may not see does not exist for them: the error is the same as for an id that was never given.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, false, not_, or_, select, true

from refract.core.db.session import ReadSession
from refract.identity.access import AccessRelation, AccessRight, is_allowed
from refract.links.errors import LinkNotFound, NotOwner
from refract.links.models import Link, LinkOwner, LinkShare, LinkState, Visibility


@dataclass(frozen=True, slots=True)
class LinkCaller:
    """A signed-in user, and whether this request carries an administrator's rights."""

    user_id: int
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class LinkAccess:
    """How a user stands to a link. `as_admin` says that nothing but an administrator's rights let them in."""

    relation: AccessRelation
    owns: bool
    visible: bool = True
    """What `visible_to` says of the link."""

    @property
    def as_admin(self) -> bool:
        return self.relation == AccessRelation.ADMIN and not self.owns

    def allows(self, right: AccessRight) -> bool:
        return self.visible and (right == AccessRight.VIEW or is_allowed(self.relation, right))

    def require(self, right: AccessRight) -> None:
        """Raise `LinkNotFound` if the user may not see the link, `NotOwner` if they may see it but not do this."""
        if not self.allows(right):
            raise NotOwner if self.allows(AccessRight.VIEW) else LinkNotFound


async def load_access(session: ReadSession, caller: LinkCaller, link: Link) -> LinkAccess:
    """Return how a user stands to a link. One query, and the same predicate that lists use."""
    mine = and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == caller.user_id)
    question = select(
        LinkOwner.primary_link_id,
        is_owned_by(caller.user_id),
        is_shared_with(caller.user_id),
        is_visible_to(caller),
    ).select_from(Link)
    found = await session.execute(question.outerjoin(LinkOwner, mine).where(Link.id == link.id))
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
    """Return the condition under which a link may be seen, in lists as by id.

    Strangers see none. A user sees what they own, and of the links that are neither deleted nor on hold what is public or
    shared with them.
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
