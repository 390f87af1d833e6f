"""Domains in requests and responses."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator
from pydantic.json_schema import SkipJsonSchema

from refract.core.phrases import Phrase
from refract.core.schemas import InputSchema, OutputSchema
from refract.domains.models import (
    MAX_FALLBACK_LENGTH,
    MAX_HOST_LENGTH,
    DomainCreators,
    DomainState,
)

MAX_TITLE = 80
DomainHost = Annotated[
    str, StringConstraints(strip_whitespace=True, to_lower=True, max_length=MAX_HOST_LENGTH)
]
"""A host in a request. Left out or null, it means the default domain."""
DomainTitle = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TITLE)]
Fallback = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_FALLBACK_LENGTH)]
TeamHandle = Annotated[str, StringConstraints(strip_whitespace=True, max_length=50)]
DefaultStatus = Literal[301, 302, 307, 308]
FALLBACKS = ("root_destination", "unknown_destination", "gone_destination")
"""The fields that hold a URL, in the order in which pages show them."""


class DomainCreate(InputSchema):
    """A new domain. Its host can't be changed later."""

    host: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000)] = Field(
        description="The host without scheme or path. International names become ASCII.",
        examples=["sho.rt"],
    )
    title: DomainTitle | None = Field(default=None, examples=["Spring campaign"])
    root_destination: Fallback | None = Field(
        default=None,
        description="Where `/` leads. Null: 404.",
        examples=["https://www.example.com/"],
    )
    unknown_destination: Fallback | None = Field(
        default=None, description="Where unknown names lead. Null: 404."
    )
    gone_destination: Fallback | None = Field(
        default=None,
        description="Where expired, disabled and deleted links lead. Null: 410.",
    )
    default_redirect_status: DefaultStatus = Field(
        default=302, description="The redirect status of links that are created without one."
    )
    creators: DomainCreators = Field(
        default=DomainCreators.EVERYONE,
        description="Who may create links on it. Administrators always may.",
    )
    team: TeamHandle | None = Field(
        default=None,
        description="The handle of the team that may create links, if `creators` is `team`.",
    )


class DomainPatch(InputSchema):
    """The fields to change. Absent fields stay; null clears title, destinations and team."""

    state: DomainState | SkipJsonSchema[None] = None
    title: DomainTitle | None = None
    root_destination: Fallback | None = None
    unknown_destination: Fallback | None = None
    gone_destination: Fallback | None = None
    default_redirect_status: DefaultStatus | SkipJsonSchema[None] = None
    creators: DomainCreators | SkipJsonSchema[None] = None
    team: TeamHandle | None = None

    @field_validator("state", "default_redirect_status", "creators")
    @classmethod
    def _not_null(cls, value: Any) -> Any:
        if value is None:
            raise ValueError(Phrase("This can't be null. Leave it out to keep the current value."))
        return value


class DomainOut(OutputSchema):
    """A domain."""

    host: str
    url: str = Field(description="The beginning of its short URLs.", examples=["https://sho.rt"])
    state: DomainState
    title: str | None
    root_destination: str | None
    unknown_destination: str | None
    gone_destination: str | None
    default_redirect_status: int
    creators: DomainCreators
    team: str | None
    links: int | None = Field(
        description="Its links, also those in the trash. Only administrators see it."
    )
    lists: int | None = Field(description="Its lists. Only administrators see it.")
    created_at: datetime
    version: int


class DomainsPage(OutputSchema):
    """Domains beside the default one."""

    default_domain: str = Field(
        description="The host of the base URL. Links are created there if no domain is named.",
        examples=["go.example.com"],
    )
    items: list[DomainOut]
    next_cursor: str | None
