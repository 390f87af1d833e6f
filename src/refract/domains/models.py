"""The table of domains."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, SmallInteger, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key

MAX_HOST_LENGTH = 253
MAX_FALLBACK_LENGTH = 2048


class DomainState(StrEnum):
    ACTIVE = "active"
    DISABLED = "disabled"


class DomainCreators(StrEnum):
    """Who may create links and lists on a domain. Administrators always may."""

    EVERYONE = "everyone"
    TEAM = "team"
    ADMINISTRATORS = "administrators"


class Domain(Model):
    """A host other than the one of the base URL, which is the default domain and has no row.

    Names and links refer to it by its host, which therefore never changes. Its row is locked by
    everything that is put on it (shared) and by its deletion.
    """

    __tablename__ = "domains"
    __table_args__ = (
        UniqueConstraint("host"),
        CheckConstraint("state IN ('active', 'disabled')", name="state"),
        CheckConstraint("creators IN ('everyone', 'team', 'administrators')", name="creators"),
        CheckConstraint(
            "default_redirect_status IN (301, 302, 307, 308)", name="default_redirect_status"
        ),
        Index("ix_domains_team", "team_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    host: Mapped[str] = mapped_column(text_key(MAX_HOST_LENGTH))  # lower case, ASCII
    state: Mapped[str] = mapped_column(String(10))  # a DomainState
    title: Mapped[str | None] = mapped_column(String(80))
    # Where `/`, unknown names and links that are gone lead to, as sent in `Location`.
    root_destination: Mapped[str | None] = mapped_column(String(MAX_FALLBACK_LENGTH))
    unknown_destination: Mapped[str | None] = mapped_column(String(MAX_FALLBACK_LENGTH))
    gone_destination: Mapped[str | None] = mapped_column(String(MAX_FALLBACK_LENGTH))
    default_redirect_status: Mapped[int] = mapped_column(SmallInteger)
    creators: Mapped[str] = mapped_column(String(16))  # a DomainCreators
    team_id: Mapped[int | None] = mapped_column(ForeignKey("teams.id"))  # if `creators` is a team
    created_at: Mapped[datetime]
    version: Mapped[int]

    @property
    def is_active(self) -> bool:
        return self.state == DomainState.ACTIVE
