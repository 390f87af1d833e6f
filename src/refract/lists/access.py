"""Relations between callers and lists. The rights they give are in the table of `identity.access`.

A list has one owner: a user, a team, or the browser whose creator cookie made it. Members of the
team have the rights of co-owners, its managers those of the primary one. For others the list does
not exist.
"""

from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, and_, false, or_, select

from refract.core.db.session import ReadSession
from refract.identity.access import AccessRelation, AccessRight, is_allowed
from refract.lists.errors import ListNotFound
from refract.lists.models import LinkList
from refract.teams.errors import NotTeamManager
from refract.teams.models import TeamMember, TeamRole
from refract.teams.queries import find_role


@dataclass(frozen=True, slots=True)
class ListCaller:
    """The caller: a user, a browser with a creator cookie (as a digest), both, or neither."""

    user_id: int | None = None
    creator: str | None = None
    is_admin: bool = False
    _roles: dict[int, TeamRole | None] = field(default_factory=dict, compare=False, repr=False)
    """Their roles in the teams whose lists were demanded, as last read."""

    async def require(
        self, session: ReadSession, found: LinkList | None, right: AccessRight
    ) -> LinkList:
        """Return the list if the caller has the right.

        Raises `ListNotFound`, or `NotTeamManager` for members of the team that owns it. The role in
        a team is read now: if the list is locked, a member who has left is kept out.
        """
        if found is not None:
            await self.load_role(session, found)
        if found is None or not self.allows(found, AccessRight.VIEW):
            raise ListNotFound
        if not self.allows(found, right):
            raise NotTeamManager
        return found

    async def load_role(self, session: ReadSession, found: LinkList) -> None:
        """Read the caller's role in the team that owns a list, if one does."""
        if found.team_id is not None and self.user_id is not None:
            self._roles[found.team_id] = await find_role(session, found.team_id, self.user_id)

    def allows(self, found: LinkList, right: AccessRight) -> bool:
        """Return whether the caller has a right to a list that was demanded."""
        return is_allowed(self.relation(found), right)

    def relation(self, found: LinkList) -> AccessRelation:
        if self.is_admin:
            return AccessRelation.ADMIN
        if not self.is_owner_of(found):
            return AccessRelation.STRANGER if self.user_id is None else AccessRelation.SIGNED_IN
        if found.team_id is None or self._roles[found.team_id] is TeamRole.MANAGER:
            return AccessRelation.PRIMARY
        return AccessRelation.CO_OWNER

    def is_owner_of(self, found: LinkList) -> bool:
        """Return whether the list is the caller's. The cookie counts until there is an owner."""
        if found.team_id is not None:
            return self._roles.get(found.team_id) is not None
        if found.owner_id is not None:
            return found.owner_id == self.user_id
        return self.creator is not None and found.creator_hash == self.creator

    def as_admin(self, found: LinkList) -> bool:
        """Return whether the caller has access only as an administrator."""
        return self.is_admin and not self.is_owner_of(found)

    def filter_own_lists(self) -> ColumnElement[bool]:
        """Return the condition for lists that are shown as the caller's own."""
        if self.user_id is not None:
            teams = select(TeamMember.team_id).where(TeamMember.user_id == self.user_id)
            return or_(LinkList.owner_id == self.user_id, LinkList.team_id.in_(teams))
        if self.creator is None:
            return false()
        return and_(
            LinkList.creator_hash == self.creator,
            LinkList.owner_id.is_(None),
            LinkList.team_id.is_(None),
        )
