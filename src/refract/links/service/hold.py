"""A link in hand: locked, with everything its next version needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from refract.core.db import WriteSession
from refract.core.errors import InvalidStateTransition, Stale
from refract.identity import audit
from refract.identity.access import Right
from refract.links import feed, history
from refract.links.access import Standing, Who, standing_of
from refract.links.errors import LinkNotFound
from refract.links.history import Action
from refract.links.models import Link, LinkChange, LinkState
from refract.links.queries.cards import tag_names
from refract.links.queries.find import creator_of
from refract.names.models import Kind
from refract.names.queries import names_of

_ALLOWED: dict[LinkState, str] = {
    LinkState.ACTIVE: "edit, disable, renew, delete",
    LinkState.DISABLED: "edit, enable, renew, delete",
    LinkState.EXPIRED: "edit, renew, delete",
    LinkState.DELETED: "undo (within 24 hours), release its names",
}


AUDITED = frozenset({Action.DELETED, Action.OWNER_ADDED, Action.OWNER_REMOVED, Action.TRANSFERRED})
"""What goes into the audit log whoever does it."""


@dataclass(slots=True)
class Held:
    """A link whose row nobody else can change until the transaction ends."""

    session: WriteSession
    who: Who
    standing: Standing
    link: Link
    names: list[str]
    tags: dict[int, str]
    now: datetime
    before: dict[str, Any]
    names_before: tuple[str, ...]
    first: LinkChange | None = None  # the first version, while it has not been written
    latest: LinkChange | None = None  # the version that was noted last

    @property
    def state(self) -> LinkState:
        """The state that its owners gave it: a hold on top of it changes nothing about what they may do."""
        return self.link.own_state_at(self.now)

    def refuse(self, wish: str) -> InvalidStateTransition:
        return InvalidStateTransition(what="link", state=self.state, wish=wish, allowed=_ALLOWED[self.state])

    def demand_not_deleted(self, wish: str) -> None:
        if self.state == LinkState.DELETED:
            raise self.refuse(wish)

    async def record(self, action: Action, changes: Mapping[str, Any] | None = None) -> bool:
        """Make the next version of what the link has become, and tell of it. An edit that changes nothing makes none.

        `changes` tells of people, who are not part of a version's own fields.
        """
        news = self.note(action, changes)
        if news is None:
            return False
        self._audit(action)
        await self.session.flush()
        await feed.changed(self.session, [news])
        return True

    def _audit(self, action: Action) -> None:
        """Add a line for what an administrator did to somebody else's link, and for deletions and moves of ownership by anybody.

        This is below every door: pages, API, command line and jobs. The link's own history has the rest.
        """
        if self.latest is not None and (self.standing.as_admin or action in AUDITED):
            target, actor = self.link.id, self.who.user_id or None
            audit.record(self.session, f"link.{action}", at=self.now, actor_id=actor, target=target, detail=_detail(self.latest.changes))

    def note(self, action: Action, changes: Mapping[str, Any] | None = None) -> feed.Change | None:
        """The same for one link of many: the caller flushes and tells for all of them at once."""
        link = self.link
        after = history.snapshot(link, self.names, self.tags)
        different = dict(changes) if changes is not None else history.difference(self.before, after)
        if not different and after == self.before:
            return None
        if self.first is not None:
            self.session.add(self.first)
            self.first = None
        link.version += 1
        link.updated_at = self.now
        link.search_text = history.searchable(link, self.names)
        self.latest = LinkChange(
            link_id=link.id,
            version=link.version,
            at=self.now,
            actor_id=self.who.user_id,
            as_admin=self.standing.as_admin,
            action=action.value,
            changes=different,
            snapshot=after,
        )
        self.session.add(self.latest)
        names = dict.fromkeys((*self.names_before, *self.names))
        self.before, self.names_before = after, tuple(self.names)
        return feed.change_of(link, names)


def _detail(changes: Mapping[str, Any]) -> str:
    """Name what changed. Of people the ids; of fields the names alone, since the link's history has their values."""
    if "reason" in changes:
        return str(changes["reason"]["to"])
    people = [f"{field} {what} {user_id}" for field in ("owners", "shares") for what, user_id in changes.get(field, {}).items()]
    return ", ".join([*people, *(field for field in changes if field not in ("owners", "shares"))])


async def hold(
    session: WriteSession, who: Who, link_id: int, now: datetime, *, right: Right = Right.EDIT, version: int | None = None
) -> Held:
    """Take a link in hand for a change. `version` is the one the change is meant for; any will do when it is absent."""
    found = select(Link).where(Link.id == link_id).with_for_update().execution_options(populate_existing=True)
    link = await session.scalar(found)
    if link is None:
        raise LinkNotFound
    standing = await standing_of(session, who, link)
    standing.demand(right)
    if version is not None and version != link.version:
        raise Stale
    names = (await names_of(session, Kind.LINK, [link.id]))[link.id]
    tags = (await tag_names(session, [link.id]))[link.id]
    held = Held(session, who, standing, link, names, tags, now, history.snapshot(link, names, tags), tuple(names))
    if link.version == 1 and await session.get(LinkChange, (link.id, 1)) is None:
        held.first = history.first_version(link, names, tags, await creator_of(session, link.id))
    return held
