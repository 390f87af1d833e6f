"""Groups of links: their clicks are also added to roll-ups of the group.

A group gets roll-ups when a request had to read too many roll-ups of single links.
Its roll-ups are like those of a link, with the links themselves as one more breakdown. Which links
belong to it is looked up when clicks are stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sqlalchemy import and_, select, update

from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.models import RollupState
from refract.clicks.rollups.breakdowns import LINKS_LETTER, add_counts
from refract.clicks.rollups.state import RollupProgress
from refract.clicks.spool.format import LINK_CLICK
from refract.core.db.bulk import get_rowcount, iter_batches
from refract.core.db.session import ReadSession, WriteSession
from refract.links.models import USER_LINKS, LinkGroup, LinkOwner

END_OF_TIME: Final = 253_402_300_799
"""The last second of the year 9999."""
MAX_CACHED_LINKS: Final = 100_000
MEMBERS: Final = {USER_LINKS: (LinkOwner.user_id, LinkOwner.link_id)}
"""The columns that tell which links are in a group, by kind: the group and the link."""


class GroupProgress(NamedTuple):
    """How far the roll-ups of a group are; see `LinkGroup`."""

    kind: int
    id: int
    version: int
    built_version: int | None
    built_from: int
    window_from: int
    built_link: int

    @property
    def is_complete(self) -> bool:
        """Return whether the roll-ups have all clicks of the links that are in the group now."""
        return self.built_version == self.version and self.built_from == 0

    def includes(self, link_id: int, at: int) -> bool:
        """Return whether the roll-ups have the clicks of a link at this time.

        The others are read from the roll-ups of the link later.
        """
        return at >= self.built_from or (at >= self.window_from and link_id <= self.built_link)


_COLUMNS: Final = tuple(getattr(LinkGroup, name) for name in GroupProgress._fields)


async def load_group(session: ReadSession, kind: int, group_id: int) -> GroupProgress | None:
    query = select(*_COLUMNS).where(LinkGroup.kind == kind, LinkGroup.id == group_id)
    row = (await session.execute(query)).one_or_none()
    return None if row is None else GroupProgress._make(row)


async def list_complete_groups(session: ReadSession) -> list[GroupProgress]:
    """Return the groups whose roll-ups have all clicks."""
    complete = LinkGroup.built_version == LinkGroup.version, LinkGroup.built_from == 0
    return [
        GroupProgress._make(row)
        for row in await session.execute(select(*_COLUMNS).where(*complete).order_by(LinkGroup.id))
    ]


async def save_group(session: WriteSession, group: GroupProgress) -> None:
    """Save the progress; `version` belongs to those who change the group."""
    names = ("built_version", "built_from", "window_from", "built_link")
    query = update(LinkGroup).where(LinkGroup.kind == group.kind, LinkGroup.id == group.id)
    await session.execute(query.values({name: getattr(group, name) for name in names}))


async def restart_builds(session: WriteSession, state: RollupProgress) -> RollupProgress:
    """Begin unfinished roll-ups of groups again, after a horizon has moved.

    They may have been read from roll-ups that are no longer kept.
    """
    unfinished = update(LinkGroup).where(LinkGroup.built_from > 0)
    found = get_rowcount(await session.execute(unfinished.values(built_version=None)))
    return replace(state, groups_turn=state.groups_turn + 1) if found else state


class GroupIndex:
    """The groups of clicked links.

    Cached for as long as no group begins, continues or ends to have roll-ups. Other changes of a
    group make its roll-ups invalid, and then it begins again.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._groups: dict[int, list[GroupProgress]] = {}

    async def is_current(self, session: ReadSession) -> bool:
        """Return whether no group has advanced since `add_groups`."""
        return await _load_turn(session) == self._turn

    async def add_groups(
        self, session: ReadSession, tallies: Mapping[RollupSlot, RollupDelta]
    ) -> Mapping[RollupSlot, RollupDelta]:
        """Return these deltas, with those of the groups that the clicked links are in.

        The result is valid for a holder of a writer's lock, if `is_current` under this lock.
        """
        if not await self.is_current(session) or len(self._groups) > MAX_CACHED_LINKS:
            self._groups.clear()
            self._turn = await _load_turn(session)
        if not self._turn:
            return tallies
        links = {target for target, kind, _ in tallies if kind == LINK_CLICK}
        await self._load_groups(session, links - self._groups.keys())
        return {**tallies, **self._sum_by_group(tallies)}

    async def _load_groups(self, session: ReadSession, link_ids: Iterable[int]) -> None:
        missing = sorted(link_ids)
        self._groups |= {link_id: [] for link_id in missing}
        for kind, (group_id, link_id) in MEMBERS.items():
            grouped = and_(LinkGroup.kind == kind, LinkGroup.id == group_id)
            query = select(link_id, *_COLUMNS).join(LinkGroup, grouped)
            query = query.where(LinkGroup.built_version.is_not(None))
            for batch in iter_batches(missing):
                for row in await session.execute(query.where(link_id.in_(batch))):
                    self._groups[row[0]].append(GroupProgress._make(row[1:]))

    def _sum_by_group(
        self, tallies: Mapping[RollupSlot, RollupDelta]
    ) -> dict[RollupSlot, RollupDelta]:
        found: dict[RollupSlot, RollupDelta] = {}
        for (link_id, kind, quarter), tally in tallies.items():
            if kind != LINK_CLICK:
                continue
            for group in self._groups[link_id]:
                if group.includes(link_id, quarter):
                    slot = (group.id, group.kind, quarter)
                    _add_delta(found.setdefault(slot, RollupDelta()), tally, link_id)
        for total in found.values():
            total.visitors = list(set(total.visitors))
        return found


async def _load_turn(session: ReadSession) -> int:
    return await session.scalar(select(RollupState.groups_turn)) or 0


def _add_delta(into: RollupDelta, tally: RollupDelta, link_id: int) -> None:
    into.people += tally.people
    into.bots += tally.bots
    into.private += tally.private
    into.visitors += tally.visitors
    add_counts(into.parts, tally.parts)
    add_link_clicks(into, link_id, tally.people)


def add_link_clicks(into: RollupDelta, link_id: int, people: int) -> None:
    """Add clicks of people to the breakdown of a group by links."""
    if people:
        key = f"{LINKS_LETTER}{link_id}"
        into.parts[key] = into.parts.get(key, 0) + people


def select_members(group: GroupProgress, *, after: int) -> Any:
    """Select the links of a group with higher ids than `after`, in their order."""
    group_id, link_id = MEMBERS[group.kind]
    return select(link_id).where(group_id == group.id, link_id > after).order_by(link_id)
