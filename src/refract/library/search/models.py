"""The words of items, as each database searches them."""

from typing import Any

from sqlalchemy import ForeignKey, Text
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, long_text


def token_column() -> Text:
    """Tokens: a `tsvector` on PostgreSQL, text under a full-text index elsewhere."""
    return long_text().with_variant(TSVECTOR(), "postgresql")


class ItemSearch(Model):
    """The tokens of an item, made by `core.words`.

    Each database has an index of its own kind over them, which migration 0015 makes: GIN, FULLTEXT, and on SQLite `item_search_fts`, kept
    in step by triggers.
    """

    __tablename__ = "item_search"

    item_id: Mapped[int] = mapped_column(
        ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    tokens: Mapped[Any] = mapped_column(token_column())
