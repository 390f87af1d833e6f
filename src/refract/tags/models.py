"""The tables of tags, for the shared vocabulary of links and the personal ones of libraries."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key

DEFAULT_COLOR = "#6B7280"
SHARED_SPACE = 0
"""The space of the shared vocabulary. Personal tags are in the space of their owner's id."""


class TagScope(StrEnum):
    SHARED = "shared"
    PERSONAL = "personal"


class Tag(Model):
    """A tag, shared or personal.

    `key` identifies a tag within its space: the slug of a shared one, which never changes, and
    the folded name of a personal one. `name_key` is the key of the current name, so that a
    renamed tag is found by its new name.
    """

    __tablename__ = "tags"
    __table_args__ = (
        UniqueConstraint("space", "key"),
        CheckConstraint("scope IN ('shared', 'personal')", name="scope"),
        Index("ix_tags_name", "space", "name_key", "id"),
        Index("ix_tags_usage", "space", "usage_count", "id"),
        Index("ix_tags_last_used", "space", "last_used_at", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    scope: Mapped[str] = mapped_column(String(10))
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    space: Mapped[int]  # owner_id, or 0: a unique key ignores rows with NULL
    key: Mapped[str] = mapped_column(text_key(200))
    name: Mapped[str] = mapped_column(String(50))
    name_key: Mapped[str] = mapped_column(text_key(200))
    color: Mapped[str] = mapped_column(String(7), default=DEFAULT_COLOR)
    usage_count: Mapped[int] = mapped_column(default=0)
    last_used_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


class TagAlias(Model):
    """A name that was merged into another tag.

    It takes precedence over the deleted tag of that name.
    """

    __tablename__ = "tag_aliases"
    __table_args__ = (Index("ix_tag_aliases_tag", "tag_id"),)

    space: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(text_key(200), primary_key=True)
    tag_id: Mapped[int] = mapped_column(ForeignKey("tags.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(50))
    created_at: Mapped[datetime]


def build_tag_row(
    number: int, owner_id: int | None, key: str, name: str, now: datetime
) -> dict[str, Any]:
    """Return the row of a new tag: a personal one of `owner_id`, or a shared one for None."""
    return {
        "id": number,
        "scope": (TagScope.SHARED if owner_id is None else TagScope.PERSONAL).value,
        "owner_id": owner_id,
        "space": SHARED_SPACE if owner_id is None else owner_id,
        "key": key,
        "name": name,
        "name_key": key,
        "color": DEFAULT_COLOR,
        "usage_count": 0,
        "last_used_at": None,
        "created_at": now,
        "deleted_at": None,
    }
