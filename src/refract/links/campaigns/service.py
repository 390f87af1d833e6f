"""Changes of UTM templates, and the destinations that they make."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError

from refract.core.db.session import WriteSession
from refract.core.errors import ExpectedVersions, RefractError
from refract.core.runtime import Runtime
from refract.core.text import fold_text
from refract.identity import audit
from refract.identity.access import AccessRight
from refract.identity.models import User
from refract.links.access import LinkCaller
from refract.links.campaigns.errors import (
    TooManyUtmTemplates,
    UtmTemplateEmpty,
    UtmTemplateExists,
    UtmTemplateNotFound,
)
from refract.links.campaigns.models import UtmTemplate
from refract.links.campaigns.parameters import UTM_KEYS, set_campaign
from refract.links.campaigns.queries import OwnedTemplate, find_usable_templates, view_template
from refract.links.campaigns.schemas import UtmTemplateCreate, UtmTemplatePatch
from refract.links.queries.links import view_link
from refract.links.schemas import LinkCreate, LinkPatch
from refract.teams.accounts import find_team_of_account
from refract.teams.errors import TeamNotFound
from refract.teams.hooks import TeamHook
from refract.teams.service import lock_own_teams

MAX_TEMPLATES: Final = 100
"""UTM templates of a user or of a team."""


async def create_template(
    session: WriteSession, owner: User, new: UtmTemplateCreate, now: datetime
) -> OwnedTemplate:
    """Create a template of a user or of one of their teams.

    Raises `UtmTemplateEmpty`, `UtmTemplateExists`, `TooManyUtmTemplates` or `TeamNotFound`.
    """
    account_team = await find_team_of_account(session, owner)
    slug = new.team or (account_team.slug if account_team else None)
    team = (await lock_own_teams(session, owner.id, {slug})).get(slug) if slug else None
    if slug and team is None:
        raise TeamNotFound
    if team is None:
        lock = select(User.id).where(User.id == owner.id).with_for_update(key_share=True)
        await session.execute(lock)
    owned = UtmTemplate.user_id == owner.id if team is None else UtmTemplate.team_id == team.id
    count = await session.scalar(select(func.count()).select_from(UtmTemplate).where(owned))
    if (count or 0) >= MAX_TEMPLATES:
        raise TooManyUtmTemplates(limit=MAX_TEMPLATES)
    template = UtmTemplate(
        id=session.ids.next_id(),
        user_id=owner.id if team is None else None,
        team_id=team.id if team is not None else None,
        **new.model_dump(include=set(UTM_KEYS)),
        created_at=now,
        updated_at=now,
    )
    return await _save(session, OwnedTemplate(template, team), new.name, owner.id, "created")


async def change_template(
    session: WriteSession, user_id: int, template_id: int, changes: UtmTemplatePatch, now: datetime
) -> OwnedTemplate:
    """Change the fields of the patch. Destinations that have its parameters stay as they are."""
    owned = await view_template(session, user_id, template_id)
    for name, value in changes.model_dump(exclude_unset=True, include=set(UTM_KEYS)).items():
        setattr(owned.template, name, value)
    owned.template.updated_at = now
    name = changes.name or owned.template.name
    return await _save(session, owned, name, user_id, "changed")


async def _save(
    session: WriteSession, owned: OwnedTemplate, name: str, actor_id: int, action: str
) -> OwnedTemplate:
    if not owned.values:
        raise UtmTemplateEmpty
    async with _claim_name(session, name):
        owned.template.name, owned.template.name_key = name, fold_text(name)
        session.add(owned.template)
    _audit(session, owned, actor_id, action, owned.template.updated_at)
    return owned


@asynccontextmanager
async def _claim_name(session: WriteSession, name: str) -> AsyncIterator[None]:
    """Write a template. The unique keys decide about its name; checking first would race."""
    try:
        async with session.begin_nested():
            yield
            await session.flush()
    except IntegrityError as exc:
        raise UtmTemplateExists(name=name) from exc


async def delete_template(
    session: WriteSession, user_id: int, template_id: int, now: datetime
) -> OwnedTemplate:
    """Delete a template. Destinations keep the parameters that it has set."""
    owned = await view_template(session, user_id, template_id)
    await session.delete(owned.template)
    _audit(session, owned, user_id, "deleted", now)
    return owned


def _audit(
    session: WriteSession, owned: OwnedTemplate, actor_id: int, action: str, now: datetime
) -> None:
    """Write an audit entry for a template of a team, whose members rely on it."""
    if owned.team is not None:
        audit.add_entry(
            session,
            f"utm_template.{action}",
            at=now,
            actor_id=actor_id,
            target=owned.team.id,
            detail=owned.template.name,
        )


# Destinations.


async def apply_templates(
    rt: Runtime, user_id: int, links: Sequence[LinkCreate]
) -> list[LinkCreate | RefractError]:
    """Return new links with the parameters of their templates in their destinations.

    What a template sets replaces the same parameters of the destination; others stay. A template
    that the user may not use is an error of its link.
    """
    used = {link.utm_template for link in links if link.utm_template is not None}
    if not used:
        return list(links)
    async with rt.db.read() as session:
        found = await find_usable_templates(session, user_id, used)
    return [_apply_template(link, found) for link in links]


def _apply_template(
    link: LinkCreate, templates: dict[int, OwnedTemplate]
) -> LinkCreate | RefractError:
    if link.utm_template is None:
        return link
    if link.utm_template not in templates:
        return UtmTemplateNotFound()
    destination = set_campaign(link.destination, templates[link.utm_template].values)
    return link.model_copy(update={"destination": destination})


async def apply_template(rt: Runtime, user_id: int, link: LinkCreate) -> LinkCreate:
    """Return a new link with the parameters of its template. Raises `UtmTemplateNotFound`."""
    (applied,) = await apply_templates(rt, user_id, [link])
    if isinstance(applied, RefractError):
        raise applied
    return applied


async def apply_template_to_change(
    rt: Runtime,
    caller: LinkCaller,
    link_id: int,
    changes: LinkPatch,
    versions: ExpectedVersions = None,
) -> tuple[LinkPatch, ExpectedVersions]:
    """Return a change of a link with the parameters of its template, and the versions it is for.

    Without a new destination they are set in the present one, so the change is only for the
    version that has it.
    """
    if changes.utm_template is None:
        return changes, versions
    async with rt.db.read() as session:
        owned = await view_template(session, caller.user_id, changes.utm_template)
        destination = changes.destination
        if destination is None:
            link, _ = await view_link(session, caller, link_id, AccessRight.EDIT)
            destination, versions = link.destination, versions or frozenset((link.version,))
    applied = set_campaign(destination, owned.values)
    return changes.model_copy(update={"destination": applied}), versions


# Teams.


async def _keep_templates(
    session: WriteSession, team_id: int, user_ids: Collection[int], now: datetime
) -> None:
    """Do nothing: the templates of a team are looked up by its members."""


async def delete_templates_of_team(session: WriteSession, team_id: int) -> None:
    """Delete the templates of a team that is being deleted."""
    await session.execute(
        delete(UtmTemplate)
        .where(UtmTemplate.team_id == team_id)
        .execution_options(synchronize_session=False)
    )


TEAM_HOOK = TeamHook(_keep_templates, delete_templates_of_team)
