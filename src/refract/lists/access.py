"""Relations between callers and lists. The rights they give are in the table of `identity.access`.

A list has one owner: a user, or the browser whose creator cookie made it. For others it does not
exist.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, false

from refract.identity.access import AccessRelation, AccessRight, is_allowed
from refract.lists.errors import ListNotFound
from refract.lists.models import LinkList


@dataclass(frozen=True, slots=True)
class ListCaller:
    """The caller: a user, a browser with a creator cookie (as a digest), both, or neither."""

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
        """Return whether the list is the caller's. The cookie counts until a user owns the list."""
        if found.owner_id is not None:
            return found.owner_id == self.user_id
        return self.creator is not None and found.creator_hash == self.creator

    def as_admin(self, found: LinkList) -> bool:
        """Return whether the caller has access only as an administrator."""
        return self.is_admin and not self.is_owner_of(found)

    def require(self, found: LinkList | None, right: AccessRight) -> LinkList:
        """Return the list if the caller has the right, or raise `ListNotFound`."""
        if found is None or not is_allowed(self.relation(found), right):
            raise ListNotFound
        return found

    def filter_own_lists(self) -> ColumnElement[bool]:
        """Return the condition for lists that are shown as the caller's own."""
        if self.user_id is not None:
            return LinkList.owner_id == self.user_id
        return (
            false()
            if self.creator is None
            else and_(LinkList.creator_hash == self.creator, LinkList.owner_id.is_(None))
        )
