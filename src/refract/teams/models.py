"""The tables of teams and their members."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key


class TeamRole(StrEnum):
    MEMBER = "member"
    MANAGER = "manager"


class Team(Model):
    """A group of users who own links together.

    Its row is locked by every change of its members or its links, so that no two of them miss each
    other. It is always locked before a link.
    """

    __tablename__ = "teams"
    __table_args__ = (UniqueConstraint("slug"), Index("ix_teams_issuer", "issuer", "group_value"))

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    slug: Mapped[str] = mapped_column(text_key(50))
    name: Mapped[str] = mapped_column(String(80))
    issuer: Mapped[str | None] = mapped_column(text_key(255))  # whose users follow `group_value`
    group_value: Mapped[str | None] = mapped_column(text_key(255))
    # Of new links that the team owns; the host of a domain, NULL for the default one.
    default_domain: Mapped[str | None] = mapped_column(text_key(253))
    default_tags: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]


class TeamMember(Model):
    """A user in a team."""

    __tablename__ = "team_members"
    __table_args__ = (
        CheckConstraint("role IN ('member', 'manager')", name="role"),
        Index("ix_team_members_user", "user_id", "team_id"),
    )

    team_id: Mapped[int] = mapped_column(
        ForeignKey("teams.id"), primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id"), primary_key=True, autoincrement=False
    )
    role: Mapped[str] = mapped_column(String(10))  # a TeamRole
    added_by: Mapped[int | None]
    created_at: Mapped[datetime]
