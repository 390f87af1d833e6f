"""Scopes of statistics: the links whose clicks are counted together.

Clicks on a domain are no scope but a filter, since a link may have names on several.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sqlalchemy import BigInteger, ColumnElement, Select, and_, literal, select

from refract.clicks.queries import EVENT_COLUMNS
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.stats.target_groups import TargetGroup, group_target, group_user_links
from refract.core.db.session import ReadSession
from refract.links.models import USER_LINKS, Link, LinkOwner, LinkTag, LinkTeam


class StatsOwner(StrEnum):
    ME = "me"
    ALL = "all"  # administrators only


class StatsScope(Protocol):
    """Links whose clicks are counted together."""

    @property
    def kind(self) -> int:
        """The kind of clicks that are counted."""

    @property
    def group(self) -> tuple[int, int] | None:
        """Kind and id of the group of links that may have roll-ups of its own, if any."""

    async def load_groups(self, session: ReadSession) -> list[TargetGroup]:
        """Return the targets whose roll-ups are summed up."""

    def select_links(self) -> Select[int]:
        """Return a query of the ids of its links."""


@dataclass(frozen=True, slots=True)
class LinkScope:
    """One link, or by `kind` a list's page or an entry."""

    link_id: int
    kind: int = LINK_CLICK
    group: tuple[int, int] | None = None

    async def load_groups(self, session: ReadSession) -> list[TargetGroup]:  # noqa: ARG002
        return group_target(self.link_id, self.kind)

    def select_links(self) -> Select[int]:
        return select(literal(self.link_id, BigInteger))


@dataclass(frozen=True, slots=True)
class AccountScope:
    """All links that a user owns or co-owns."""

    user_id: int
    kind: int = LINK_CLICK

    @property
    def group(self) -> tuple[int, int] | None:
        return USER_LINKS, self.user_id

    async def load_groups(self, session: ReadSession) -> list[TargetGroup]:
        return await group_user_links(session, self.user_id)

    def select_links(self) -> Select[int]:
        return select(LinkOwner.link_id).where(LinkOwner.user_id == self.user_id)


@dataclass(frozen=True, slots=True)
class SelectedScope:
    """What a query selects, such as the entries of a list."""

    targets: Select[int]
    kind: int = LINK_CLICK
    group: tuple[int, int] | None = None

    async def load_groups(self, session: ReadSession) -> list[TargetGroup]:  # noqa: ARG002
        return [_group_selected(self.targets, self.kind)]

    def select_links(self) -> Select[int]:
        return self.targets


@dataclass(frozen=True, slots=True)
class TaggedLinksScope:
    """The links with a tag among those that a user owns or co-owns."""

    user_id: int
    tag_id: int
    kind: int = LINK_CLICK
    group: tuple[int, int] | None = None

    async def load_groups(self, session: ReadSession) -> list[TargetGroup]:  # noqa: ARG002
        return [_group_selected(self.select_links(), self.kind)]

    def select_links(self) -> Select[int]:
        return (
            select(LinkTag.link_id)
            .join(LinkOwner, LinkOwner.link_id == LinkTag.link_id)
            .where(LinkTag.tag_id == self.tag_id, LinkOwner.user_id == self.user_id)
        )


@dataclass(frozen=True, slots=True)
class TeamLinksScope:
    """The links that a team owns or co-owns."""

    team_id: int
    kind: int = LINK_CLICK
    group: tuple[int, int] | None = None

    async def load_groups(self, session: ReadSession) -> list[TargetGroup]:  # noqa: ARG002
        return [_group_selected(self.select_links(), self.kind)]

    def select_links(self) -> Select[int]:
        return select(LinkTeam.link_id).where(LinkTeam.team_id == self.team_id)


@dataclass(frozen=True, slots=True)
class AllLinksScope:
    """The links of everyone, for administrators. Only with a filter: their roll-ups are too many.

    A link in the trash is counted until it is purged.
    """

    kind: int = LINK_CLICK
    group: tuple[int, int] | None = None

    async def load_groups(self, session: ReadSession) -> list[TargetGroup]:  # noqa: ARG002
        return [_group_selected(self.select_links(), self.kind)]

    def select_links(self) -> Select[int]:
        return select(Link.id)


def _group_selected(targets: Select[int], kind: int) -> TargetGroup:
    return TargetGroup(
        lambda table: and_(table.target_id.in_(targets), table.kind == kind), is_single=False
    )


def match_targets(scope: StatsScope, *, is_brief: bool = False) -> ColumnElement[bool]:
    """Return the condition of events on the links of a scope.

    Events of a brief time are few: they are found by time, and not by each link of the scope.
    """
    target = EVENT_COLUMNS["target_id"]
    if isinstance(scope, LinkScope):
        return target == scope.link_id
    links = scope.select_links()
    if is_brief:
        return links.where(links.selected_columns[0] == target).exists()
    return target.in_(links)
