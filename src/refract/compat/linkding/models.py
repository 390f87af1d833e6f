"""The table of small numbers that linkding's clients use as ids."""

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model


class LinkdingNumber(Model):
    """A number of an item or a tag, counted up per user: clients read ids as 32-bit integers.

    A row outlives its item or tag, so that no number is given twice.
    """

    __tablename__ = "linkding_numbers"

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    item_id: Mapped[int | None] = mapped_column(
        ForeignKey("items.id", ondelete="SET NULL"), unique=True
    )
    tag_id: Mapped[int | None] = mapped_column(
        ForeignKey("tags.id", ondelete="SET NULL"), unique=True
    )
