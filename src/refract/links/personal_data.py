"""A person's links in their data export, and when their account is deleted."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import String, delete, inspect, or_, select, update

from refract.core.db.bulk import iter_batches
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.links.campaigns.models import UtmTemplate
from refract.links.campaigns.queries import list_templates
from refract.links.export import build_record, iter_card_pages
from refract.links.models import Link, LinkChange, LinkInvitation, LinkOwner
from refract.links.service import digest, erase_invitations, hand_over_links

ERASED_DESTINATION = "https://erased.invalid/"
"""The destination of a link whose only owner was deleted.

Its names and id stay reserved, so that nobody can take over a published URL.
"""

_KEPT_COLUMNS = frozenset({"audience", "domain", "flag_reason", "random_code"})
_ERASED_COLUMNS = tuple(
    column.name
    for column in inspect(Link).local_table.columns
    if column.nullable and isinstance(column.type, String) and column.name not in _KEPT_COLUMNS
)
"""Title, notes, rules, card, password, other destinations: all that a person may have written."""


async def export_personal_data(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Return the links that a person owns, alone or with others."""
    now = rt.clock.now()
    async for cards in iter_card_pages(rt, user.id):
        for card in cards:
            yield build_record(card, now)


async def erase_personal_data(session: WriteSession, rt: Runtime, leaving: AccountDeletion) -> None:
    """Hand over co-owned links; hand the others to the heir, or delete them.

    A deleted link loses every text that the person wrote.
    """
    await erase_invitations(session, leaving.user.id)
    await hand_over_links(
        session, leaving.user, rt.clock.now(), heir=leaving.heir, heir_team=leaving.heir_team
    )
    alone = list(
        await session.scalars(select(LinkOwner.link_id).where(LinkOwner.user_id == leaving.user.id))
    )
    for batch in iter_batches(alone):
        blank = update(Link).where(Link.id.in_(batch))
        await session.execute(
            blank.values(
                destination=ERASED_DESTINATION,
                href=ERASED_DESTINATION,
                href_digest=digest(ERASED_DESTINATION),
                destination_host="erased.invalid",
                has_placeholders=False,
                search_text="",
                **dict.fromkeys(_ERASED_COLUMNS),
            ).execution_options(synchronize_session=False)
        )
        await session.execute(delete(LinkChange).where(LinkChange.link_id.in_(batch)))


async def export_invitations(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Return the open invitations that a person received or sent."""
    async with rt.db.read() as session:
        theirs = or_(LinkInvitation.invitee_id == user.id, LinkInvitation.inviter_id == user.id)
        found = list(
            await session.scalars(select(LinkInvitation).where(theirs).order_by(LinkInvitation.id))
        )
    for invitation in found:
        names = ("id", "link_id", "inviter_id", "invitee_id", "role", "created_at", "expires_at")
        yield {
            name: str(getattr(invitation, name))
            if name.endswith("id")
            else getattr(invitation, name)
            for name in names
        }


async def skip_erasure(session: WriteSession, rt: Runtime, leaving: AccountDeletion) -> None:
    """Do nothing: invitations are deleted with the links."""


async def export_utm_templates(rt: Runtime, user: User) -> AsyncIterator[dict[str, Any]]:
    """Return the person's own UTM templates."""
    async with rt.db.read() as session:
        found = await list_templates(session, user.id)
    for owned in found:
        if owned.team is None:
            yield owned.to_schema().model_dump(mode="json", exclude={"team"})


async def erase_utm_templates(
    session: WriteSession, _rt: Runtime, leaving: AccountDeletion
) -> None:
    """Delete the person's own UTM templates. Those of teams stay."""
    own = delete(UtmTemplate).where(UtmTemplate.user_id == leaving.user.id)
    await session.execute(own.execution_options(synchronize_session=False))


PERSONAL_DATA_HOOK = PersonalDataHook("links", export_personal_data, erase_personal_data)
INVITATION_DATA_HOOK = PersonalDataHook("invitations", export_invitations, skip_erasure)
UTM_TEMPLATE_DATA_HOOK = PersonalDataHook(
    "utm_templates", export_utm_templates, erase_utm_templates
)
