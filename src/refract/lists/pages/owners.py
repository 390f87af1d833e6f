"""The owner of a list on its page: possible teams, and who changed what."""

from typing import Any, Final

from refract.core.db.session import ReadSession
from refract.identity.access import AccessRight
from refract.lists import queries
from refract.lists.access import ListCaller
from refract.lists.models import LinkList
from refract.teams.queries import list_own_teams
from refract.web.i18n import gettext, lazy_gettext

EDIT_LABELS: Final = {
    "edited": lazy_gettext("Edited details"),
    "entries_added": lazy_gettext("Added links"),
    "entry_edited": lazy_gettext("Edited a link"),
    "entry_fetched": lazy_gettext("Fetched a link again"),
    "entry_removed": lazy_gettext("Removed a link"),
    "entry_restored": lazy_gettext("Restored a link"),
    "section_added": lazy_gettext("Added a section"),
    "section_edited": lazy_gettext("Edited a section"),
    "section_removed": lazy_gettext("Removed a section"),
    "reordered": lazy_gettext("Changed the order"),
    "published": lazy_gettext("Published the list"),
    "restored": lazy_gettext("Restored the list"),
}


async def load_owner_choices(session: ReadSession, user_id: int | None) -> list[tuple[str, str]]:
    """Return who may own a new list: the user, and their teams. Empty without teams."""
    teams = await list_own_teams(session, user_id) if user_id is not None else []
    return [("", gettext("You")), *((team.slug, team.name) for team in teams)] if teams else []


async def load_owner_context(
    session: ReadSession, caller: ListCaller, found: LinkList
) -> dict[str, Any]:
    """Return what the card of the owner shows: choices for a transfer, and the latest edits."""
    may_transfer = caller.user_id is not None and caller.allows(found, AccessRight.TRANSFER)
    choices = await load_owner_choices(session, caller.user_id) if may_transfer else []
    if not choices and may_transfer and found.team_id is not None:
        choices = [("", gettext("You"))]
    edits = await queries.list_edits(session, found.id) if found.team_id is not None else []
    return {
        "heirs": [choice for choice in choices if choice[0] != (found.team_slug or "")],
        "edits": [
            (user.public_name, EDIT_LABELS[edit.action], edit.edited_at)
            for edit, user in edits
            if edit.action in EDIT_LABELS
        ],
    }
