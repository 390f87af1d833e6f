"""Tags as the API shows them."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

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

    @classmethod
    def of(cls, tag: Tag) -> "TagOut":
        return cls(
            id=str(tag.id), scope="shared" if tag.scope == "shared" else "personal", name=tag.name, slug=tag.key, color=tag.color,
            usage_count=tag.usage_count, last_used_at=tag.last_used_at,
        )  # fmt: skip


class TagPatch(BaseModel):
    """What may change about a tag."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(default=None, max_length=200, examples=["Engineering Tools"])
    color: str | None = Field(default=None, max_length=20, examples=["#2563EB"])
