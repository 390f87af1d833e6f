"""The table of names."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, String, false
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key
from refract.names.grammar import MAX_KEY_LENGTH


class Name(Model):
    """A name that was claimed. Its comparison key is the primary key, which decides every race.

    On the default domain the name is `Road_Map` and the key `road-map`; on another domain they are
    `sho.rt/Road_Map` and `/sho.rt/road-map` (`names.grammar.name_key`).

    `head`, `middle` and `tail` are the key cut in three, each with the key's length
    (`names/similarity.py`). Two typing errors leave at least one part intact, so similar names
    are found without reading every name.

    A code that an import has kept is a name as well, with the exact text as its key and a `stem`
    (`names.grammar.join_code`, `build_stem`).
    """

    __tablename__ = "names"
    __table_args__ = (
        CheckConstraint("kind IN ('link', 'list')", name="kind"),
        Index("ix_names_target", "kind", "target_id"),
        Index("ix_names_head", "head"),
        Index("ix_names_middle", "middle"),
        Index("ix_names_tail", "tail"),
        Index("ix_names_held_until", "held_until"),
        Index("ix_names_stem", "stem"),
    )

    key: Mapped[str] = mapped_column(text_key(MAX_KEY_LENGTH), primary_key=True)
    name: Mapped[str] = mapped_column(text_key(MAX_KEY_LENGTH))  # as typed, with the host
    kind: Mapped[str] = mapped_column(String(10))
    target_id: Mapped[int]
    head: Mapped[str] = mapped_column(text_key(24))
    middle: Mapped[str] = mapped_column(text_key(24))
    tail: Mapped[str] = mapped_column(text_key(24))
    created_at: Mapped[datetime]
    held_until: Mapped[datetime | None]  # of a deleted target: reserved until then
    generated: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether this is a link's random code: never listed or suggested, released with the link."""
    stem: Mapped[str | None] = mapped_column(text_key(MAX_KEY_LENGTH))
    """Of a kept code: the key of the name that its path would otherwise be read as."""
