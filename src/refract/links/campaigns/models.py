"""The table of UTM templates."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key


class UtmTemplate(Model):
    """Named campaign parameters of a user or a team, to be set in destinations.

    Links have no reference to it: they have the parameters in their destination.
    """

    __tablename__ = "utm_templates"
    __table_args__ = (
        UniqueConstraint("user_id", "name_key"),
        UniqueConstraint("team_id", "name_key"),
        CheckConstraint("(user_id IS NULL) <> (team_id IS NULL)", name="owner"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    team_id: Mapped[int | None] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(50))
    name_key: Mapped[str] = mapped_column(text_key(200))
    utm_source: Mapped[str | None] = mapped_column(String(200))
    utm_medium: Mapped[str | None] = mapped_column(String(200))
    utm_campaign: Mapped[str | None] = mapped_column(String(200))
    utm_term: Mapped[str | None] = mapped_column(String(200))
    utm_content: Mapped[str | None] = mapped_column(String(200))
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
