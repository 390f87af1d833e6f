"""UTM templates that a user may use: their own, and those of their teams."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, or_, select

from refract.core.db.session import ReadSession
from refract.core.text import fold_text
from refract.links.campaigns.errors import AmbiguousUtmTemplate, UtmTemplateNotFound
from refract.links.campaigns.models import UtmTemplate
from refract.links.campaigns.parameters import UTM_KEYS
from refract.links.campaigns.schemas import UtmTemplateOut
from refract.teams.models import Team, TeamMember


@dataclass(frozen=True, slots=True)
class OwnedTemplate:
    """A UTM template, and the team that owns it, if any."""

    template: UtmTemplate
    team: Team | None

    @property
    def values(self) -> dict[str, str]:
        """Return the parameters that it sets."""
        values = {key: getattr(self.template, key) for key in UTM_KEYS}
        return {key: value for key, value in values.items() if value}

    @property
    def label(self) -> str:
        """Return its name for menus, with that of the team."""
        name = self.template.name
        return f"{name} ({self.team.name})" if self.team is not None else name

    def to_schema(self) -> UtmTemplateOut:
        template = self.template
        return UtmTemplateOut(
            id=template.id,
            name=template.name,
            team=self.team.slug if self.team else None,
            **{key: getattr(template, key) for key in UTM_KEYS},
            created_at=template.created_at,
            updated_at=template.updated_at,
        )


async def list_templates(session: ReadSession, user_id: int) -> Sequence[OwnedTemplate]:
    """Return a user's templates and those of their teams: their own first, then by name."""
    found = [OwnedTemplate(*row) for row in await session.execute(_select_usable(user_id))]
    return sorted(found, key=_rank_template)


def _rank_template(owned: OwnedTemplate) -> tuple[bool, str, str]:
    slug = owned.team.slug if owned.team else ""
    return owned.team is not None, slug, owned.template.name_key


async def find_usable_templates(
    session: ReadSession, user_id: int, template_ids: Collection[int]
) -> dict[int, OwnedTemplate]:
    """Return those of these templates that a user may use, by id."""
    if not template_ids:
        return {}
    query = _select_usable(user_id).where(UtmTemplate.id.in_(template_ids))
    found = [OwnedTemplate(*row) for row in await session.execute(query)]
    return {owned.template.id: owned for owned in found}


async def view_template(session: ReadSession, user_id: int, template_id: int) -> OwnedTemplate:
    """Return a template. Raises `UtmTemplateNotFound` for those of others."""
    found = await find_usable_templates(session, user_id, [template_id])
    if template_id not in found:
        raise UtmTemplateNotFound
    return found[template_id]


async def find_template(session: ReadSession, user_id: int, which: str) -> OwnedTemplate:
    """Return a template by its id or name; a user's own comes before one of a team.

    Raises `UtmTemplateNotFound`, or `AmbiguousUtmTemplate` if several teams have one.
    """
    usable = await list_templates(session, user_id)
    by_id = [owned for owned in usable if str(owned.template.id) == which]
    named = [owned for owned in usable if owned.template.name_key == fold_text(which.strip())]
    own = [owned for owned in named if owned.team is None]
    found = by_id or own or named
    if not found:
        raise UtmTemplateNotFound
    if len(found) > 1:
        raise AmbiguousUtmTemplate(name=which.strip())
    return found[0]


def _select_usable(user_id: int) -> Select[UtmTemplate, Team]:
    query = select(UtmTemplate, Team).outerjoin(Team, Team.id == UtmTemplate.team_id)
    return query.where(_is_usable_by(user_id))


def _is_usable_by(user_id: int) -> ColumnElement[bool]:
    teams = select(TeamMember.team_id).where(TeamMember.user_id == user_id)
    return or_(UtmTemplate.user_id == user_id, UtmTemplate.team_id.in_(teams))
