"""Who may see a link, and how a user stands to it; what that allows is in the one table of `identity.access`.

A link that a user may not see does not exist for them: the error is the same as for an id that was never given.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, false, not_, or_, select, true

from refract.core.db import ReadSession
from refract.identity.access import Relation, Right, allowed
from refract.links.errors import LinkNotFound, NotYours
from refract.links.models import Link, LinkOwner, LinkShare, LinkState, Visibility


@dataclass(frozen=True, slots=True)
class Who:
    """A signed-in user, and whether this request carries an administrator's rights."""

    user_id: int
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How a user stands to a link. `as_admin` says that nothing but an administrator's rights let them in."""

    relation: Relation
    owns: bool
    visible: bool = True
    """What `visible_to` says of the link."""

    @property
    def as_admin(self) -> bool:
        return self.relation == Relation.ADMIN and not self.owns

    def may(self, right: Right) -> bool:
        return self.visible and (right == Right.VIEW or allowed(self.relation, right))

    def demand(self, right: Right) -> None:
        """Raise `LinkNotFound` if the user may not see the link, `NotYours` if they may see it but not do this."""
        if not self.may(right):
            raise NotYours if self.may(Right.VIEW) else LinkNotFound


async def standing_of(session: ReadSession, who: Who, link: Link) -> Standing:
    """Return how a user stands to a link. One query, and the same predicate that lists use."""
    mine = and_(LinkOwner.link_id == Link.id, LinkOwner.user_id == who.user_id)
    question = select(LinkOwner.primary_link_id, owned_by(who.user_id), shared_with(who.user_id), visible_to(who)).select_from(Link)
    found = await session.execute(question.outerjoin(LinkOwner, mine).where(Link.id == link.id))
    primary, owns, shared, visible = found.one()
    if who.is_admin:
        relation = Relation.ADMIN
    elif owns:
        relation = Relation.CO_OWNER if primary is None else Relation.PRIMARY
    else:
        relation = Relation.RECIPIENT if shared else Relation.SIGNED_IN
    return Standing(relation, owns=bool(owns), visible=bool(visible))


def owned_by(user_id: int) -> ColumnElement[bool]:
    return select(LinkOwner.link_id).where(LinkOwner.link_id == Link.id, LinkOwner.user_id == user_id).correlate(Link).exists()


def shared_with(user_id: int) -> ColumnElement[bool]:
    return select(LinkShare.link_id).where(LinkShare.link_id == Link.id, LinkShare.user_id == user_id).correlate(Link).exists()


def visible_to(who: Who | None) -> ColumnElement[bool]:
    """Return the condition under which a link may be seen, in lists as by id.

    Strangers see none. A user sees what they own, and of the links that are neither deleted nor on hold what is public or
    shared with them.
    """
    if who is None:
        return false()
    if who.is_admin:
        return true()
    others = or_(Link.visibility == Visibility.PUBLIC, shared_with(who.user_id))
    return or_(owned_by(who.user_id), and_(Link.status != LinkState.DELETED, not_(Link.on_hold), others))
