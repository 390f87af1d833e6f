"""The table of names."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, String, false
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key


class Name(Model):
    """A name that was claimed. Its comparison key is the primary key, which decides every race.

    `head`, `middle` and `tail` are the key cut in three, each with the key's length
    (`names/similarity.py`). Two typing errors leave at least one part intact, so similar names
    are found without reading every name.
    """

    __tablename__ = "names"
    __table_args__ = (
        CheckConstraint("kind IN ('link', 'list')", name="kind"),
        Index("ix_names_target", "kind", "target_id"),
        Index("ix_names_head", "head"),
        Index("ix_names_middle", "middle"),
        Index("ix_names_tail", "tail"),
        Index("ix_names_held_until", "held_until"),
    )

    key: Mapped[str] = mapped_column(text_key(64), primary_key=True)
    name: Mapped[str] = mapped_column(text_key(64))  # as typed
    kind: Mapped[str] = mapped_column(String(10))
    target_id: Mapped[int]
    head: Mapped[str] = mapped_column(text_key(24))
    middle: Mapped[str] = mapped_column(text_key(24))
    tail: Mapped[str] = mapped_column(text_key(24))
    created_at: Mapped[datetime]
    held_until: Mapped[datetime | None]  # of a deleted target: reserved until then
    generated: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether this is a link's random code: never listed or suggested, released with the link."""
