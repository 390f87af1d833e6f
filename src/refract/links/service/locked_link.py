"""A locked link with everything that its next version needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.errors import ExpectedVersions, InvalidStateTransition, VersionMismatch
from refract.core.phrases import Phrase
from refract.identity import audit
from refract.identity.access import AccessRight
from refract.links import feed, history
from refract.links.access import LinkAccess, LinkCaller, load_access
from refract.links.changes import TargetChange
from refract.links.enums import LinkState
from refract.links.errors import LinkNotFound
from refract.links.history import LinkChangeAction
from refract.links.models import Link, LinkChange
from refract.links.queries.cards import load_tag_names
from refract.links.queries.links import get_creator_id
from refract.names.enums import NameTarget
from refract.names.queries import list_names

_ALLOWED_ACTIONS: dict[LinkState, Phrase] = {
    LinkState.ACTIVE: Phrase("edit, disable, renew, delete"),
    LinkState.DISABLED: Phrase("edit, enable, renew, delete"),
    LinkState.EXPIRED: Phrase("edit, renew, delete"),
    LinkState.DELETED: Phrase("undo (within 24 hours), release its names"),
}
_STATE_LABELS: dict[LinkState, Phrase] = {
    LinkState.ACTIVE: Phrase("active"),
    LinkState.DISABLED: Phrase("disabled"),
    LinkState.EXPIRED: Phrase("expired"),
    LinkState.DELETED: Phrase("deleted"),
}


AUDITED_ACTIONS = frozenset(
    {
        LinkChangeAction.DELETED,
        LinkChangeAction.OWNER_ADDED,
        LinkChangeAction.OWNER_REMOVED,
        LinkChangeAction.TRANSFERRED,
    }
)
"""Actions that are always written to the audit log."""


@dataclass(slots=True)
class LockedLink:
    """A link whose row is locked until the transaction ends."""

    session: WriteSession
    caller: LinkCaller
    access: LinkAccess
    link: Link
    names: list[str]
    tags: dict[int, str]
    now: datetime
    snapshot_before: dict[str, Any]
    names_before: tuple[str, ...]
    unwritten_version: LinkChange | None = None  # the first version, until it is written
    latest_change: LinkChange | None = None  # the version that was recorded last

    @property
    def state(self) -> LinkState:
        """Return the state regardless of a hold, which does not restrict its owners."""
        return self.link.own_state_at(self.now)

    def build_transition_error(self, action: Phrase) -> InvalidStateTransition:
        """Return the error for an action that the link's state doesn't allow."""
        return InvalidStateTransition(
            what=Phrase("The link"),
            state=self.state,
            label=_STATE_LABELS[self.state],
            action=action,
            allowed=_ALLOWED_ACTIONS[self.state],
        )

    def require_not_deleted(self, action: Phrase) -> None:
        """Raise `InvalidStateTransition` if the link is deleted."""
        if self.state == LinkState.DELETED:
            raise self.build_transition_error(action)

    async def record_version(
        self, action: LinkChangeAction, changes: Mapping[str, Any] | None = None
    ) -> bool:
        """Record the next version and publish the change. An edit without changes records none.

        `changes` describes people, who are not among a version's fields.
        """
        change = self.add_version(action, changes)
        if change is None:
            return False
        self._audit(action)
        await self.session.flush()
        await feed.publish_changes(self.session, [change])
        return True

    def _audit(self, action: LinkChangeAction) -> None:
        """Write an audit entry where one is due.

        It is due for administrators on others' links, and for all deletions and changes of
        ownership. Pages, API, command line and jobs all pass through here; other changes
        are in the link's own history.
        """
        if self.latest_change is not None and (self.access.as_admin or action in AUDITED_ACTIONS):
            target, actor = self.link.id, self.caller.user_id or None
            audit.add_entry(
                self.session,
                f"link.{action}",
                at=self.now,
                actor_id=actor,
                target=target,
                detail=_describe_changes(self.latest_change.changes),
            )

    def add_version(
        self, action: LinkChangeAction, changes: Mapping[str, Any] | None = None
    ) -> TargetChange | None:
        """Do the same for one of many links: the caller flushes and publishes for all of them."""
        link = self.link
        after = history.take_snapshot(link, self.names, self.tags)
        different = (
            dict(changes)
            if changes is not None
            else history.diff_snapshots(self.snapshot_before, after)
        )
        if not different and after == self.snapshot_before:
            return None
        if self.unwritten_version is not None:
            self.session.add(self.unwritten_version)
            self.unwritten_version = None
        link.version += 1
        link.updated_at = self.now
        link.search_text = history.build_search_text(link, self.names)
        self.latest_change = LinkChange(
            link_id=link.id,
            version=link.version,
            at=self.now,
            actor_id=self.caller.user_id,
            as_admin=self.access.as_admin,
            action=action.value,
            changes=different,
            snapshot=after,
        )
        self.session.add(self.latest_change)
        names = dict.fromkeys((*self.names_before, *self.names))
        self.snapshot_before, self.names_before = after, tuple(self.names)
        return feed.build_change(link, names)


_PEOPLE_FIELDS = ("owners", "teams", "shares")


def _describe_changes(changes: Mapping[str, Any]) -> str:
    """Return what changed: ids of people and teams, and names of fields. The history has values."""
    if "reason" in changes:
        return str(changes["reason"]["to"])
    people = [
        f"{field} {what} {user_id}"
        for field in _PEOPLE_FIELDS
        for what, user_id in changes.get(field, {}).items()
    ]
    return ", ".join([*people, *(field for field in changes if field not in _PEOPLE_FIELDS)])


async def lock_link(
    session: WriteSession,
    caller: LinkCaller,
    link_id: int,
    now: datetime,
    *,
    right: AccessRight = AccessRight.EDIT,
    version: ExpectedVersions = None,
) -> LockedLink:
    """Lock a link for a change. `version` is the one that the change is meant for, None for any."""
    found = (
        select(Link)
        .where(Link.id == link_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    link = await session.scalar(found)
    if link is None:
        raise LinkNotFound
    access = await load_access(session, caller, link)
    access.require(right)
    if version is not None and link.version not in version:
        raise VersionMismatch
    names = (await list_names(session, NameTarget.LINK, [link.id]))[link.id]
    tags = (await load_tag_names(session, [link.id]))[link.id]
    locked = LockedLink(
        session,
        caller,
        access,
        link,
        names,
        tags,
        now,
        history.take_snapshot(link, names, tags),
        tuple(names),
    )
    if link.version == 1 and await session.get(LinkChange, (link.id, 1)) is None:
        locked.unwritten_version = history.build_first_version(
            link, names, tags, await get_creator_id(session, link.id)
        )
    return locked
