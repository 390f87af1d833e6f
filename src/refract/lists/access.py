"""Who stands how to a list; what that allows is in the one table of `identity.access`.

A list has one maker: a person, or whoever holds the cookie that made it. For everybody else it is not there.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, false

from refract.identity.access import AccessRelation, AccessRight, is_allowed
from refract.lists.errors import ListNotFound
from refract.lists.models import LinkList


@dataclass(frozen=True, slots=True)
class ListCaller:
    """Somebody who asks: a person, a browser with a creator cookie (known by its digest), both, or neither."""

    user_id: int | None = None
    creator: str | None = None
    is_admin: bool = False

    def relation(self, found: LinkList) -> AccessRelation:
        if self.is_admin:
            return AccessRelation.ADMIN
        if self.is_owner_of(found):
            return AccessRelation.PRIMARY
        return AccessRelation.STRANGER if self.user_id is None else AccessRelation.SIGNED_IN

    def is_owner_of(self, found: LinkList) -> bool:
        """Once a person has a list, the cookie that made it opens it no more."""
        if found.owner_id is not None:
            return found.owner_id == self.user_id
        return self.creator is not None and found.creator_hash == self.creator

    def as_admin(self, found: LinkList) -> bool:
        """Whether nothing but an administrator's rights let them in."""
        return self.is_admin and not self.is_owner_of(found)

    def require(self, found: LinkList | None, right: AccessRight) -> LinkList:
        """The list, for those who may do this with it; for others there is none."""
        if found is None or not is_allowed(self.relation(found), right):
            raise ListNotFound
        return found

    def filter_own_lists(self) -> ColumnElement[bool]:
        """The lists that are shown as somebody's own."""
        if self.user_id is not None:
            return LinkList.owner_id == self.user_id
        return (
            false()
            if self.creator is None
            else and_(LinkList.creator_hash == self.creator, LinkList.owner_id.is_(None))
        )
