"""Tags in the API."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from refract.core.schemas import Id, InputSchema
from refract.tags.models import Tag


class TagOut(BaseModel):
    """A tag."""

    id: str
    scope: Literal["shared", "personal"]
    name: str
    slug: str
    color: str
    usage_count: int
    last_used_at: datetime | None
    aliases: list[str] = Field(
        default=[], description="Names of tags that were merged into this one."
    )

    @classmethod
    def from_tag(cls, tag: Tag, aliases: Sequence[str] = ()) -> "TagOut":
        return cls(
            id=str(tag.id),
            scope="shared" if tag.scope == "shared" else "personal",
            name=tag.name,
            slug=tag.key,
            color=tag.color,
            usage_count=tag.usage_count,
            last_used_at=tag.last_used_at,
            aliases=list(aliases),
        )


class TagPatch(BaseModel):
    """The fields of a tag to change."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(default=None, max_length=200, examples=["Engineering Tools"])
    color: str | None = Field(default=None, max_length=20, examples=["#2563EB"])


class TagCreate(InputSchema):
    """A tag to create."""

    name: str = Field(max_length=200, examples=["Machine learning"])
    color: str | None = Field(default=None, max_length=20, examples=["#2563EB"])
    scope: Literal["personal", "shared"] = Field(
        default="personal", description="Only administrators create shared tags."
    )


class TagMerge(InputSchema):
    """Tags to merge into one."""

    target: Id = Field(description="The tag that is kept, with its name.")
    sources: list[Id] = Field(
        min_length=1,
        max_length=100,
        description="The tags that are merged into it.",
        examples=[["361890234523649"]],
    )
