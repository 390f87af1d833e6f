"""UTM templates in the API."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, field_validator
from pydantic.json_schema import SkipJsonSchema

from refract.core.phrases import Phrase
from refract.core.schemas import Id, InputSchema, OutputSchema
from refract.teams.schemas import TeamHandle


def _none_if_empty(text: str) -> str | None:
    return text or None


UtmTemplateName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=50),
    Field(examples=["Newsletter"]),
]
UtmValue = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=200), AfterValidator(_none_if_empty)
]


class UtmValues(InputSchema):
    """Campaign parameters. Those that are null are left alone in destinations."""

    utm_source: UtmValue | None = Field(default=None, examples=["newsletter"])
    utm_medium: UtmValue | None = Field(default=None, examples=["email"])
    utm_campaign: UtmValue | None = Field(default=None, examples=["spring-launch"])
    utm_term: UtmValue | None = Field(default=None, examples=[None])
    utm_content: UtmValue | None = Field(default=None, examples=[None])


class UtmTemplateCreate(UtmValues):
    """A UTM template to create, with at least one parameter."""

    name: UtmTemplateName
    team: TeamHandle | None = Field(
        default=None,
        description="The handle of a team of yours that shall own it. Omitted: you do.",
        examples=[None],
    )


class UtmTemplatePatch(UtmValues):
    """The fields to change. Absent fields stay; null clears a parameter."""

    name: UtmTemplateName | SkipJsonSchema[None] = None

    @field_validator("name")
    @classmethod
    def _not_null(cls, name: str | None) -> str | None:
        if name is None:
            raise ValueError(Phrase("This can't be null. Leave it out to keep the current value."))
        return name


class UtmTemplateOut(OutputSchema):
    """A UTM template."""

    id: Id
    name: str
    team: str | None = Field(description="The handle of the team that owns it. Null: you do.")
    utm_source: str | None
    utm_medium: str | None
    utm_campaign: str | None
    utm_term: str | None
    utm_content: str | None
    created_at: datetime
    updated_at: datetime


class UtmTemplateList(OutputSchema):
    """Your UTM templates and those of your teams, by name."""

    items: list[UtmTemplateOut]
    next_cursor: str | None = None
