"""Editing a link, restoring an earlier version, and undoing the latest change."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.errors import ExpectedVersions, NothingToUndo
from refract.core.phrases import Phrase
from refract.domains.queries import DomainCaller, lock_usable_domain
from refract.identity.access import AccessRight
from refract.links import history
from refract.links.access import LinkCaller
from refract.links.enums import LinkState, Visibility
from refract.links.errors import (
    ChangedByAdmin,
    NameNotFound,
    PasswordRequired,
    PasswordUnused,
    TeamRequired,
    TooManyNames,
    UnlistedRequired,
)
from refract.links.history import UNDOABLE_ACTIONS, LinkChangeAction
from refract.links.models import Link
from refract.links.queries.links import get_version, is_owned_by_team
from refract.links.rules.checks import CheckedRules
from refract.links.safety.service import CheckedDestination, enqueue_recheck
from refract.links.schemas import MAX_NAMES, LinkPatch
from refract.links.service.checks import CheckedChanges
from refract.links.service.create import reject_late_start, reject_past_expiry
from refract.links.service.locked_link import LockedLink, lock_link
from refract.links.service.new_links import digest
from refract.links.service.tags import ensure_tags, replace_tags, validate_tags
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.names.errors import SlugTaken
from refract.names.grammar import join_code, join_name, name_key
from refract.names.service import Namespace
from refract.tags.queries import find_tags_by_id
from refract.tags.service import adjust_usage

UNDO_WINDOW = timedelta(hours=24)
_PLAIN_FIELDS = frozenset(
    {
        *("title", "notes", "redirect_status", "forward_query", "noindex"),
        *("starts_at", "click_limit"),
    }
)
"""Fields that need no check and stand alone."""


async def edit_link(
    session: WriteSession,
    space: Namespace,
    caller: LinkCaller,
    link_id: int,
    patch: LinkPatch,
    checked: CheckedChanges | None = None,
    *,
    version: ExpectedVersions = None,
) -> LockedLink:
    """Change the fields of the patch.

    `checked` is needed for new URLs and passwords, `version` is the version that the change is
    meant for.
    """
    checked = checked or CheckedChanges()
    vetted = checked.destination
    locked = await lock_link(session, caller, link_id, space.clock.now(), version=version)
    locked.require_not_deleted(Phrase("edited"))
    given = patch.model_fields_set
    if "destination" in given and vetted is not None and vetted.as_typed != locked.link.destination:
        await set_destination(locked, space, vetted)
    if "expires_at" in given and patch.expires_at != locked.link.expires_at:
        reject_past_expiry(patch.expires_at, locked.now)
        locked.link.expires_at = patch.expires_at
        clear_expired_mark(locked.link)
    for field in given & _PLAIN_FIELDS:
        setattr(locked.link, field, getattr(patch, field))
    if "preview_card" in given:
        card = patch.preview_card
        locked.link.preview_card = card.to_column() if card is not None else None
    if "qr_style" in given:
        style = patch.qr_style
        locked.link.qr_style = style.to_column() if style is not None else None
    reject_late_start(locked.link.starts_at, locked.link.expires_at)
    for field, url in checked.substitutes.items():
        setattr(locked.link, field, url)
    await _set_visibility(locked, patch.visibility, checked.password_hash)
    if locked.link.click_limit is not None and locked.link.visibility == Visibility.PUBLIC:
        raise UnlistedRequired
    if patch.tags is not None:
        tags = await ensure_tags(session, space.ids, validate_tags(patch.tags), locked.now)
        await replace_tags(session, link_id, locked.tags, tags, locked.now)
        locked.tags = tags
    await locked.record_version(LinkChangeAction.EDITED)
    return locked


async def replace_rules(
    session: WriteSession,
    space: Namespace,
    caller: LinkCaller,
    link_id: int,
    checked: CheckedRules,
    *,
    version: ExpectedVersions = None,
) -> LockedLink:
    """Replace the rules of a link. `version` is the version that the change is meant for."""
    locked = await lock_link(session, caller, link_id, space.clock.now(), version=version)
    locked.require_not_deleted(Phrase("edited"))
    locked.link.rules = checked.number_rules(locked.link.rules)
    if checked.unchecked:
        await enqueue_recheck(session, space, [link_id])
    await locked.record_version(LinkChangeAction.EDITED)
    return locked


async def _set_visibility(
    locked: LockedLink, visibility: Visibility | None, password_hash: str | None
) -> None:
    """Change the visibility, the password or both. Each needs the other."""
    link = locked.link
    if visibility is None:
        visibility = Visibility.PASSWORD if password_hash else link.effective_visibility
    if visibility == Visibility.TEAM and not await is_owned_by_team(locked.session, link.id):
        raise TeamRequired
    if visibility != Visibility.PASSWORD:
        if password_hash:
            raise PasswordUnused
        link.password_hash = None
    elif password_hash or link.password_hash is None:
        if not password_hash:
            raise PasswordRequired
        link.password_hash = password_hash
    link.effective_visibility = visibility


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
    locked = await lock_link(session, caller, link_id, space.clock.now())
    locked.require_not_deleted(Phrase("reverted"))
    kept = (await get_version(session, link_id, version)).snapshot
    expiry = locked.link.expires_at
    history.restore_fields(locked.link, kept, with_state=False)
    if locked.link.expires_at is not None and locked.link.expires_at <= locked.now:
        locked.link.expires_at = expiry
    await set_destination(locked, space, vetted)
    clear_expired_mark(locked.link)
    await _restore_tags(locked, kept)
    await locked.record_version(LinkChangeAction.REVERTED)
    return locked


async def undo_link(
    session: WriteSession, space: Namespace, caller: LinkCaller, link_id: int
) -> LockedLink:
    """Undo the latest delete, disable or edit exactly.

    Only an administrator can undo what an administrator did to another's link.
    """
    locked = await lock_link(session, caller, link_id, space.clock.now(), right=AccessRight.EDIT)
    last = await get_version(session, link_id, locked.link.version)
    if last.action not in UNDOABLE_ACTIONS or locked.now - last.at > UNDO_WINDOW:
        raise NothingToUndo
    if last.as_admin and not caller.is_admin:
        raise ChangedByAdmin
    kept = (await get_version(session, link_id, last.version - 1)).snapshot
    revived = locked.link.status == LinkState.DELETED
    if revived:
        await adjust_usage(session, dict.fromkeys(locked.tags, 1), locked.now)
    moved = kept["destination"] != locked.link.destination
    history.restore_fields(locked.link, kept, with_state=True)
    if moved:  # to a destination that has not been checked since
        locked.link.checked_at = None
        await enqueue_recheck(session, space, [link_id])
    await _restore_tags(locked, kept)
    await locked.record_version(LinkChangeAction.UNDONE)
    return locked


async def set_destination(locked: LockedLink, space: Namespace, vetted: CheckedDestination) -> None:
    """Change the destination. If it could not be checked yet, queue a recheck."""
    link = locked.link
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
    link.checked_at = None if vetted.unchecked else locked.now
    if vetted.unchecked:
        await enqueue_recheck(locked.session, space, [link.id])


def clear_expired_mark(link: Link) -> None:
    """Make a link marked as expired depend on its expiry again. The mark is only the job's note."""
    if link.status == LinkState.EXPIRED:
        link.status = LinkState.ACTIVE.value


async def _restore_tags(locked: LockedLink, snapshot: Mapping[str, Any]) -> None:
    """Restore the tags of an earlier version that still exist, under their current names."""
    found = await find_tags_by_id(locked.session, [int(tag_id) for tag_id in snapshot["tags"]])
    tags = {tag.id: tag.name for tag in found.values() if tag.deleted_at is None}
    await replace_tags(locked.session, locked.link.id, locked.tags, tags, locked.now)
    locked.tags = tags


# Names of a link: they are added and released, never changed.


async def add_name(
    session: WriteSession,
    space: Namespace,
    caller: LinkCaller,
    link_id: int,
    name: str,
    *,
    host: str | None = None,
    version: ExpectedVersions = None,
) -> LockedLink:
    """Add a name to a link, on the domain with this host or on the default one.

    The caller must be allowed to create links there.
    """
    if host is not None:  # before the link, as where links are created
        await lock_usable_domain(session, DomainCaller(caller.user_id, caller.is_admin), host)
    locked = await lock_link(session, caller, link_id, space.clock.now(), version=version)
    locked.require_not_deleted(Phrase("given a name"))
    text = join_name(host, name)
    if name_key(text) in map(name_key, locked.names):
        raise SlugTaken(name=name)
    if len(locked.names) >= MAX_NAMES:
        raise TooManyNames(limit=MAX_NAMES)
    await names.claim_names_for(
        session, space, NameTarget.LINK, link_id, [name], host, claimant=caller.user_id
    )
    locked.names.append(text)
    await locked.record_version(LinkChangeAction.NAMED)
    return locked


async def release_name(
    session: WriteSession,
    space: Namespace,
    caller: LinkCaller,
    link_id: int,
    name: str,
    *,
    host: str | None = None,
    version: ExpectedVersions = None,
) -> LockedLink:
    """Release a name on a domain, so that anyone can take it. Works for deleted links too.

    A kept code is released if it is spelled like this, before a name.
    """
    locked = await lock_link(session, caller, link_id, space.clock.now(), version=version)
    code = join_code(host, name)
    key = code if code in locked.names else name_key(join_name(host, name))
    if not await names.release_names(session, NameTarget.LINK, link_id, [key]):
        raise NameNotFound(name=name)
    locked.names = [kept_name for kept_name in locked.names if name_key(kept_name) != key]
    await locked.record_version(LinkChangeAction.NAME_RELEASED)
    return locked
