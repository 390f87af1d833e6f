"""Editing a link, restoring an earlier version, and undoing the latest change."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.errors import NothingToUndo
from refract.core.phrases import Phrase
from refract.identity.access import AccessRight
from refract.links import history
from refract.links.access import LinkCaller
from refract.links.errors import ChangedByAdmin, NameNotFound, TooManyNames
from refract.links.history import UNDOABLE_ACTIONS, LinkChangeAction
from refract.links.models import Link, LinkState
from refract.links.queries.links import get_version
from refract.links.safety.service import CheckedDestination, enqueue_recheck
from refract.links.schemas import MAX_NAMES, LinkPatch
from refract.links.service.create import reject_past_expiry
from refract.links.service.locked_link import LockedLink, lock_link
from refract.links.service.new_links import digest
from refract.links.service.tags import ensure_tags, replace_tags, validate_tags
from refract.names import service as names
from refract.names.errors import SlugTaken
from refract.names.grammar import name_key
from refract.names.models import NameTarget
from refract.names.service import Namespace
from refract.tags.queries import find_tags_by_id
from refract.tags.service import adjust_usage

UNDO_WINDOW = timedelta(hours=24)


async def edit_link(
    session: WriteSession,
    space: Namespace,
    caller: LinkCaller,
    link_id: int,
    patch: LinkPatch,
    vetted: CheckedDestination | None = None,
    *,
    version: int | None = None,
) -> LockedLink:
    """Change the fields of the patch.

    `vetted` is its checked destination, `version` the version that the change is meant for.
    """
    held = await lock_link(session, caller, link_id, space.clock.now(), version=version)
    held.require_not_deleted(Phrase("edited"))
    given = patch.model_fields_set
    if "destination" in given and vetted is not None and vetted.as_typed != held.link.destination:
        await set_destination(held, space, vetted)
    if "expires_at" in given and patch.expires_at != held.link.expires_at:
        reject_past_expiry(patch.expires_at, held.now)
        held.link.expires_at = patch.expires_at
        clear_expired_mark(held.link)
    for field in given & {"title", "notes", "redirect_status", "forward_query"}:
        setattr(held.link, field, getattr(patch, field))
    if patch.visibility is not None:
        held.link.effective_visibility = patch.visibility
    if patch.tags is not None:
        tags = await ensure_tags(session, space.ids, validate_tags(patch.tags), held.now)
        await replace_tags(session, link_id, held.tags, tags, held.now)
        held.tags = tags
    await held.record_version(LinkChangeAction.EDITED)
    return held


async def revert_link(
    session: WriteSession,
    space: Namespace,
    caller: LinkCaller,
    link_id: int,
    version: int,
    vetted: CheckedDestination,
) -> LockedLink:
    """Restore the fields of an earlier version. `vetted` is its destination, checked again.

    Names and people stay; an expiry that has passed since is not restored.
    """
    held = await lock_link(session, caller, link_id, space.clock.now())
    held.require_not_deleted(Phrase("reverted"))
    kept = (await get_version(session, link_id, version)).snapshot
    expiry = held.link.expires_at
    history.restore_fields(held.link, kept, with_state=False)
    if held.link.expires_at is not None and held.link.expires_at <= held.now:
        held.link.expires_at = expiry
    await set_destination(held, space, vetted)
    clear_expired_mark(held.link)
    await _restore_tags(held, kept)
    await held.record_version(LinkChangeAction.REVERTED)
    return held


async def undo_link(
    session: WriteSession, space: Namespace, caller: LinkCaller, link_id: int
) -> LockedLink:
    """Undo the latest delete, disable or edit exactly.

    Only an administrator can undo what an administrator did to another's link.
    """
    held = await lock_link(session, caller, link_id, space.clock.now(), right=AccessRight.EDIT)
    last = await get_version(session, link_id, held.link.version)
    if last.action not in UNDOABLE_ACTIONS or held.now - last.at > UNDO_WINDOW:
        raise NothingToUndo
    if last.as_admin and not caller.is_admin:
        raise ChangedByAdmin
    kept = (await get_version(session, link_id, last.version - 1)).snapshot
    revived = held.link.status == LinkState.DELETED
    if revived:
        await adjust_usage(session, dict.fromkeys(held.tags, 1), held.now)
    moved = kept["destination"] != held.link.destination
    history.restore_fields(held.link, kept, with_state=True)
    if moved:  # to a destination that has not been checked since
        held.link.checked_at = None
        await enqueue_recheck(session, space, [link_id])
    await _restore_tags(held, kept)
    await held.record_version(LinkChangeAction.UNDONE)
    return held


async def set_destination(held: LockedLink, space: Namespace, vetted: CheckedDestination) -> None:
    """Change the destination. If it could not be checked yet, queue a recheck."""
    link = held.link
    link.destination, link.href, link.href_digest = (
        vetted.as_typed,
        vetted.href,
        digest(vetted.href),
    )
    link.destination_host, link.flagged, link.flag_reason = (
        vetted.host,
        vetted.flagged,
        vetted.flag_reason,
    )
    link.has_placeholders = vetted.template is not None
    link.checked_at = None if vetted.unchecked else held.now
    if vetted.unchecked:
        await enqueue_recheck(held.session, space, [link.id])


def clear_expired_mark(link: Link) -> None:
    """Make a link marked as expired depend on its expiry again. The mark is only the job's note."""
    if link.status == LinkState.EXPIRED:
        link.status = LinkState.ACTIVE.value


async def _restore_tags(held: LockedLink, snapshot: Mapping[str, Any]) -> None:
    """Restore the tags of an earlier version that still exist, under their current names."""
    found = await find_tags_by_id(held.session, [int(tag_id) for tag_id in snapshot["tags"]])
    tags = {tag.id: tag.name for tag in found.values() if tag.deleted_at is None}
    await replace_tags(held.session, held.link.id, held.tags, tags, held.now)
    held.tags = tags


# Names of a link: they are added and released, never changed.


async def add_name(
    session: WriteSession,
    space: Namespace,
    caller: LinkCaller,
    link_id: int,
    name: str,
    *,
    version: int | None = None,
) -> LockedLink:
    """Add a name to a link."""
    held = await lock_link(session, caller, link_id, space.clock.now(), version=version)
    held.require_not_deleted(Phrase("given a name"))
    if name_key(name) in map(name_key, held.names):
        raise SlugTaken(name=name)
    if len(held.names) >= MAX_NAMES:
        raise TooManyNames(limit=MAX_NAMES)
    await names.claim_names_for(session, space, NameTarget.LINK, link_id, [name])
    held.names.append(name)
    await held.record_version(LinkChangeAction.NAMED)
    return held


async def release_name(
    session: WriteSession,
    space: Namespace,
    caller: LinkCaller,
    link_id: int,
    name: str,
    *,
    version: int | None = None,
) -> LockedLink:
    """Release a name, so that anyone can take it. Works for deleted links too."""
    held = await lock_link(session, caller, link_id, space.clock.now(), version=version)
    if not await names.release_names(session, NameTarget.LINK, link_id, [name_key(name)]):
        raise NameNotFound(name=name)
    held.names = [kept_name for kept_name in held.names if name_key(kept_name) != name_key(name)]
    await held.record_version(LinkChangeAction.NAME_RELEASED)
    return held
