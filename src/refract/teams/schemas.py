"""Teams in requests and responses."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints
from pydantic.json_schema import SkipJsonSchema

from refract.core.schemas import Id, InputSchema, OutputSchema
from refract.identity.models import Scope
from refract.identity.schemas import KeyExpiry, KeyName
from refract.teams.models import TeamRole

MAX_NAME = 80
MAX_SLUG = 50
TeamName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME)
]
TeamSlug = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_SLUG)]

TeamHandle = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_SLUG)
]
"""The handle of a team in a request about something else."""


class TeamCreate(InputSchema):
    """A new team, whose first manager is the caller."""

    name: TeamName = Field(examples=["Marketing"])
    slug: TeamSlug | None = Field(
        default=None,
        description="Its handle in URLs and commands. Omitted: derived from the name.",
        examples=["marketing"],
    )


class TeamPatch(InputSchema):
    """Changes of a team. Omitted fields are unchanged."""

    name: TeamName | SkipJsonSchema[None] = None
    slug: TeamSlug | SkipJsonSchema[None] = None


class TeamGroup(InputSchema):
    """A group of an identity provider, which members of a team follow."""

    issuer: Annotated[str, StringConstraints(min_length=1, max_length=31)] = Field(
        description="The provider's name in the settings, which names its claim of groups.",
        examples=["work"],
    )
    group: Annotated[str, StringConstraints(min_length=1, max_length=255)] = Field(
        examples=["marketing"]
    )


class TeamOut(OutputSchema):
    """A team."""

    id: Id
    slug: str
    name: str
    role: TeamRole | None = Field(description="The caller's role. Null if they aren't a member.")
    members: int = Field(description="How many members it has.")
    group: str | None = Field(
        description="The group of an identity provider that its members follow."
    )
    default_domain: str | None = Field(
        description="The host on which new links of the team live. Null: the default domain."
    )
    default_tags: list[str] = Field(description="Tags of new links of the team.")
    created_at: datetime


class TeamsPage(OutputSchema):
    items: list[TeamOut]
    next_cursor: str | None


class TeamMemberCreate(InputSchema):
    """A user to add, by the verified email address of their account."""

    email: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=3, max_length=255)
    ] = Field(examples=["ada@example.com"])
    role: TeamRole = TeamRole.MEMBER


class TeamMemberPatch(InputSchema):
    role: TeamRole


class TeamMemberOut(OutputSchema):
    """A member of a team."""

    user_id: Id
    name: str
    email: str
    role: TeamRole
    added_at: datetime


class TeamMemberList(OutputSchema):
    """All members of a team, managers first."""

    items: list[TeamMemberOut]
    next_cursor: str | None = None


TeamKeyScope = Literal[Scope.READ, Scope.WRITE]


def _list_default_scopes() -> list[TeamKeyScope]:
    return [Scope.READ, Scope.WRITE]


class TeamKeyCreate(InputSchema):
    """A new API key of a team, for its links and their analytics."""

    name: KeyName = Field(examples=["Deploy script"])
    scopes: Annotated[list[Literal[Scope.READ, Scope.WRITE]], Field(min_length=1, max_length=2)] = (
        Field(default_factory=_list_default_scopes)
    )
    expires_at: KeyExpiry = None
