"""Changing a link, going back to what it was, undoing the last step."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from refract.core.db import WriteSession
from refract.core.errors import NothingToUndo
from refract.identity.access import Right
from refract.links import history
from refract.links.access import Who
from refract.links.errors import OnlyAdministrators
from refract.links.history import UNDOABLE, Action
from refract.links.models import Link, LinkState
from refract.links.payloads import check_later
from refract.links.queries.find import version_of
from refract.links.safety import Vetted
from refract.links.schemas import LinkPatch
from refract.links.service.create import refuse_past
from refract.links.service.hold import Held, hold
from refract.links.service.new_links import digest
from refract.links.service.tagging import checked, retag, wanted
from refract.names.service import Namespace
from refract.tags.queries import tags_by_id
from refract.tags.service import count_use

UNDO_WITHIN = timedelta(hours=24)


async def edit_link(
    session: WriteSession,
    space: Namespace,
    who: Who,
    link_id: int,
    patch: LinkPatch,
    vetted: Vetted | None = None,
    *,
    version: int | None = None,
) -> Held:
    """Change what the patch names. `vetted` is its destination, looked at; `version` the one the change is meant for."""
    held = await hold(session, who, link_id, space.clock.now(), version=version)
    held.demand_not_deleted("edited")
    given = patch.model_fields_set
    if "destination" in given and vetted is not None and vetted.typed != held.link.destination:
        await lead_to(held, space, vetted)
    if "expires_at" in given and patch.expires_at != held.link.expires_at:
        refuse_past(patch.expires_at, held.now)
        held.link.expires_at = patch.expires_at
        wake(held.link)
    for field in given & {"title", "notes", "redirect_status", "forward_query"}:
        setattr(held.link, field, getattr(patch, field))
    if patch.visibility is not None:
        held.link.seen_as = patch.visibility
    if patch.tags is not None:
        tags = await wanted(session, space.ids, checked(patch.tags), held.now)
        await retag(session, link_id, held.tags, tags, held.now)
        held.tags = tags
    await held.record(Action.EDITED)
    return held


async def revert_link(session: WriteSession, space: Namespace, who: Who, link_id: int, version: int, vetted: Vetted) -> Held:
    """Give a link the fields of an earlier version again. `vetted` is that version's destination, looked at anew.

    Names and people stay as they are; an expiry that has passed meanwhile does not come back.
    """
    held = await hold(session, who, link_id, space.clock.now())
    held.demand_not_deleted("reverted")
    kept = (await version_of(session, link_id, version)).snapshot
    expiry = held.link.expires_at
    history.restore(held.link, kept, life=False)
    if held.link.expires_at is not None and held.link.expires_at <= held.now:
        held.link.expires_at = expiry
    await lead_to(held, space, vetted)
    wake(held.link)
    await _restore_tags(held, kept)
    await held.record(Action.REVERTED)
    return held


async def undo(session: WriteSession, space: Namespace, who: Who, link_id: int) -> Held:
    """Take back the latest delete, disable or edit, exactly. What an administrator did to somebody's link, only one can take back."""
    held = await hold(session, who, link_id, space.clock.now(), right=Right.EDIT)
    last = await version_of(session, link_id, held.link.version)
    if last.action not in UNDOABLE or held.now - last.at > UNDO_WITHIN:
        raise NothingToUndo
    if last.as_admin and not who.is_admin:
        raise OnlyAdministrators
    kept = (await version_of(session, link_id, last.version - 1)).snapshot
    revived = held.link.status == LinkState.DELETED
    if revived:
        await count_use(session, dict.fromkeys(held.tags, 1), held.now)
    moved = kept["destination"] != held.link.destination
    history.restore(held.link, kept, life=True)
    if moved:  # to where nobody has looked since
        held.link.checked_at = None
        await check_later(session, space, [link_id])
    await _restore_tags(held, kept)
    await held.record(Action.UNDONE)
    return held


async def lead_to(held: Held, space: Namespace, vetted: Vetted) -> None:
    """Send a link somewhere else. What could not be checked yet is checked as soon as the service can be asked."""
    link = held.link
    link.destination, link.href, link.href_digest = vetted.typed, vetted.href, digest(vetted.href)
    link.destination_host, link.flagged, link.flag_reason = vetted.host, vetted.flagged, vetted.flag_reason
    link.has_placeholders = vetted.template is not None
    link.checked_at = None if vetted.unchecked else held.now
    if vetted.unchecked:
        await check_later(held.session, space, [link.id])


def wake(link: Link) -> None:
    """A link that was marked as expired goes by its expiry again; the mark is only the job's note."""
    if link.status == LinkState.EXPIRED:
        link.status = LinkState.ACTIVE.value


async def _restore_tags(held: Held, kept: Mapping[str, Any]) -> None:
    """The tags of an earlier version, as far as they still exist, under the names they have now."""
    found = await tags_by_id(held.session, [int(tag_id) for tag_id in kept["tags"]])
    tags = {tag.id: tag.name for tag in found.values() if tag.deleted_at is None}
    await retag(held.session, held.link.id, held.tags, tags, held.now)
    held.tags = tags
