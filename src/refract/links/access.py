"""Who stands how to a link; what that allows is in the one table of `identity.access`.

What somebody may not even see does not exist for them: the answer is the same as for an id that was never given.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, or_, select, true

from refract.core.db import ReadSession
from refract.identity.access import Relation, Right, allowed
from refract.links.errors import LinkNotFound, NotYours
from refract.links.models import Link, LinkOwner, LinkShare, LinkState, Visibility


@dataclass(frozen=True, slots=True)
class Who:
    """A signed-in person, and whether this request carries an administrator's rights."""

    user_id: int
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How a person stands to a link. `as_admin` says that nothing but an administrator's rights let them in."""

    relation: Relation
    owns: bool
    public: bool

    @property
    def as_admin(self) -> bool:
        return self.relation == Relation.ADMIN and not self.owns

    def may(self, right: Right) -> bool:
        return allowed(self.relation, right, public=self.public)

    def demand(self, right: Right) -> None:
        """Nothing there for those who may not see it, a refusal for those who may see it but not do this."""
        if not self.may(right):
            raise NotYours if self.may(Right.VIEW) else LinkNotFound


async def standing_of(session: ReadSession, who: Who, link: Link) -> Standing:
    mine = await session.scalar(select(LinkOwner).where(LinkOwner.link_id == link.id, LinkOwner.user_id == who.user_id))
    public = link.visibility == Visibility.PUBLIC and link.status != LinkState.DELETED
    if who.is_admin:
        return Standing(Relation.ADMIN, owns=mine is not None, public=public)
    if mine is not None:
        return Standing(Relation.PRIMARY if mine.is_primary else Relation.CO_OWNER, owns=True, public=public)
    shared = await session.scalar(select(LinkShare.user_id).where(LinkShare.link_id == link.id, LinkShare.user_id == who.user_id))
    return Standing(Relation.SIGNED_IN if shared is None else Relation.RECIPIENT, owns=False, public=public)


def owned_by(user_id: int) -> ColumnElement[bool]:
    return select(LinkOwner.link_id).where(LinkOwner.link_id == Link.id, LinkOwner.user_id == user_id).exists()


def shared_with(user_id: int) -> ColumnElement[bool]:
    return select(LinkShare.link_id).where(LinkShare.link_id == Link.id, LinkShare.user_id == user_id).exists()


def visible_to(who: Who | None) -> ColumnElement[bool]:
    """The links somebody may know of: public ones for strangers; people signed in also know their own and those shared with them."""
    if who is not None and who.is_admin:
        return true()
    public = Link.visibility == Visibility.PUBLIC
    return public if who is None else or_(public, owned_by(who.user_id), shared_with(who.user_id))
