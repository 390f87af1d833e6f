"""The tables of links: owners, viewers, invitations, tags, versions and the change feed."""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Connection,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    column,
    event,
    inspect,
    select,
    table,
    update,
)
from sqlalchemy.orm import Mapped, Mapper, column_property, mapped_column

from refract.core.db.types import Model, UtcDateTime, text_key
from refract.core.ids import encode_base62
from refract.links.enums import LinkState, Visibility

_OWNERS = table(
    "link_owners", column("primary_link_id", BigInteger), column("user_id", BigInteger)
).alias("holding_owner")
_USERS = table("users", column("id", BigInteger), column("held_at", UtcDateTime)).alias(
    "holding_user"
)


class Link(Model):
    """A destination with its settings and state.

    Ids are ordered by creation: `created_at` is the moment inside the id, or what an import says;
    then the id is drawn from it (`core.ids.draw_link_id`). Clicks are in `LinkTotals`, so that
    counting never locks this row.
    """

    __tablename__ = "links"
    __table_args__ = (
        CheckConstraint("status IN ('active', 'disabled', 'expired', 'deleted')", name="status"),
        CheckConstraint("visibility IN ('public', 'unlisted', 'secure')", name="visibility"),
        CheckConstraint("redirect_status IN (301, 302, 307, 308)", name="redirect_status"),
        Index("ix_links_status", "status", "id"),
        Index("ix_links_expires_at", "status", "expires_at"),
        Index("ix_links_deleted_at", "deleted_at"),
        Index("ix_links_visibility", "visibility", "id"),
        Index("ix_links_updated_at", "updated_at", "id"),
        Index("ix_links_href_digest", "href_digest", "id"),
        Index("ix_links_destination_host", "destination_host", "id"),
        Index("ix_links_checked_at", "checked_at", "id"),
        Index("ix_links_domain", "domain", "id"),
    )

    id: Mapped[int] = mapped_column(
        primary_key=True, autoincrement=False
    )  # Snowflake; the code is derived
    destination: Mapped[str] = mapped_column(String(2048))  # as typed
    href: Mapped[str] = mapped_column(Text)  # as sent in Location
    href_digest: Mapped[str] = mapped_column(text_key(32))
    destination_host: Mapped[str] = mapped_column(text_key(255))
    has_placeholders: Mapped[bool]
    title: Mapped[str | None] = mapped_column(String(200))
    notes: Mapped[str | None] = mapped_column(Text)
    redirect_status: Mapped[int] = mapped_column(SmallInteger)
    visibility: Mapped[str] = mapped_column(
        String(10)
    )  # restricted links are stored as `secure`; see `effective_visibility`
    audience: Mapped[str | None] = mapped_column(String(10))  # who else may open a `secure` link
    random_code: Mapped[str | None] = mapped_column(
        text_key(16)
    )  # replaces the code derived from the id; a generated name
    forward_query: Mapped[bool]
    status: Mapped[str] = mapped_column(String(10))
    disabled_by_admin: Mapped[bool]
    flagged: Mapped[bool]  # a preview is shown before it redirects
    flag_reason: Mapped[str | None] = mapped_column(
        String(20)
    )  # a FlagReason; NULL on rows flagged by older versions means unchecked
    checked_at: Mapped[datetime | None]  # last check against blocklist and safety service
    expires_at: Mapped[datetime | None]
    expired_destination: Mapped[str | None] = mapped_column(Text)  # instead of a page: it expired
    starts_at: Mapped[datetime | None]
    before_destination: Mapped[str | None] = mapped_column(Text)  # the same before it starts
    rules: Mapped[str | None] = mapped_column(Text)  # see `links.rules.document`
    preview_card: Mapped[str | None] = mapped_column(Text)  # see `links.preview_cards`
    noindex: Mapped[bool | None]  # NULL on older rows: no
    click_limit: Mapped[int | None] = mapped_column(Integer)  # see `links.limits`
    limit_destination: Mapped[str | None] = mapped_column(Text)  # the same once it is reached
    qr_style: Mapped[str | None] = mapped_column(Text)  # see `links.qr_styles`
    password_hash: Mapped[str | None] = mapped_column(
        String(128)
    )  # of a link with the audience `password`; see `core.passwords`
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]
    version: Mapped[int]
    domain: Mapped[str | None] = mapped_column(text_key(253))  # its host; NULL: the default domain
    search_text: Mapped[str] = mapped_column(Text)  # folded: names, title, notes, destination
    on_hold: Mapped[bool] = column_property(
        # Not with EXISTS: PostgreSQL would read all links on hold to look at one.
        select(_USERS.c.held_at)
        .join(_OWNERS, _OWNERS.c.user_id == _USERS.c.id)
        .where(_OWNERS.c.primary_link_id == id)  # noqa: A003 - the column above
        .correlate_except(_OWNERS, _USERS)
        .scalar_subquery()
        .is_not(None),
        expire_on_flush=False,
    )

    @property
    def code(self) -> str:
        """Return the short code of the link."""
        return self.random_code or encode_base62(self.id)

    @property
    def effective_visibility(self) -> Visibility:
        return Visibility.from_columns(self.visibility, self.audience)

    @effective_visibility.setter
    def effective_visibility(self, value: Visibility) -> None:
        self.visibility, self.audience = value.columns

    def state_at(self, at: datetime) -> LinkState:
        """Return the state for visitors: on hold takes precedence over all but deleted."""
        own = self.own_state_at(at)
        return LinkState.ON_HOLD if self.on_hold and own != LinkState.DELETED else own

    def is_scheduled_at(self, at: datetime) -> bool:
        """Return whether it only starts to redirect later."""
        return self.starts_at is not None and at < self.starts_at

    def own_state_at(self, at: datetime) -> LinkState:
        """Return the state regardless of a hold. Expiry depends on the time, not on a job."""
        if self.status in (LinkState.DELETED, LinkState.DISABLED):
            return LinkState(self.status)
        return (
            LinkState.EXPIRED
            if self.expires_at is not None and self.expires_at <= at
            else LinkState.ACTIVE
        )


NO_OWNER = 0
"""The `owner_id` of a row whose link is purged. NULL means not looked up yet."""


class LinkTotals(Model):
    """Clicks of a link; no row means none. The ingester counts; purges keep the row.

    `owner_id` repeats the primary owner, so that a user's links are sorted along an index. The
    ingester does not know owners: a job fills it in (`links.service.assign_owners`).
    """

    __tablename__ = "link_totals"
    __table_args__ = (
        Index("ix_link_totals_total_clicks", "total_clicks", "link_id"),
        Index("ix_link_totals_last_clicked_at", "last_clicked_at", "link_id"),
        Index("ix_link_totals_owner_clicks", "owner_id", "total_clicks", "link_id"),
        Index("ix_link_totals_owner_last", "owner_id", "last_clicked_at", "link_id"),
    )

    link_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner_id: Mapped[int | None]
    total_clicks: Mapped[int] = mapped_column(default=0)
    bot_clicks: Mapped[int] = mapped_column(default=0)
    last_clicked_at: Mapped[datetime | None]


class LinkOwner(Model):
    """An owner of a link.

    `primary_link_id` repeats the link's id for the primary owner and is NULL for co-owners: a
    nullable unique column allows one primary owner and no second, on every database.

    `status`, `visibility` and `updated_at` repeat the link's columns, so that a user's links are
    filtered and sorted along an index. They only narrow a search: the link's own columns decide.

    The members of a team that owns a link have a row each, with `through_team`, so that every list
    finds their links along the same indexes. `links.service.teams` writes and deletes these rows.
    """

    __tablename__ = "link_owners"
    __table_args__ = (
        UniqueConstraint("primary_link_id"),
        CheckConstraint(
            "primary_link_id IS NULL OR primary_link_id = link_id", name="primary_link_id"
        ),
        Index("ix_link_owners_user", "user_id", "link_id"),
        Index("ix_link_owners_primary", "user_id", "primary_link_id", "link_id"),
        Index("ix_link_owners_status", "user_id", "status", "link_id"),
        Index("ix_link_owners_visibility", "user_id", "visibility", "link_id"),
        Index("ix_link_owners_updated_at", "user_id", "updated_at", "link_id"),
    )

    link_id: Mapped[int] = mapped_column(
        ForeignKey("links.id"), primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id"), primary_key=True, autoincrement=False
    )
    primary_link_id: Mapped[int | None]
    added_by: Mapped[int | None]
    created_at: Mapped[datetime]
    status: Mapped[str | None] = mapped_column(String(10))
    visibility: Mapped[str | None] = mapped_column(String(10))
    updated_at: Mapped[datetime | None]
    through_team: Mapped[bool | None]  # only as a member of a team in `LinkTeam`

    @property
    def is_primary(self) -> bool:
        return self.primary_link_id is not None


class LinkTeam(Model):
    """A team that owns a link. `primary_link_id` is as in `LinkOwner`.

    A link has one primary owner: a user there, or a team here.
    """

    __tablename__ = "link_teams"
    __table_args__ = (
        UniqueConstraint("primary_link_id"),
        CheckConstraint(
            "primary_link_id IS NULL OR primary_link_id = link_id", name="primary_link_id"
        ),
        Index("ix_link_teams_team", "team_id", "link_id"),
    )

    link_id: Mapped[int] = mapped_column(
        ForeignKey("links.id"), primary_key=True, autoincrement=False
    )
    team_id: Mapped[int] = mapped_column(
        ForeignKey("teams.id"), primary_key=True, autoincrement=False
    )
    primary_link_id: Mapped[int | None]
    added_by: Mapped[int | None]
    created_at: Mapped[datetime]

    @property
    def is_primary(self) -> bool:
        return self.primary_link_id is not None


COPIED_COLUMNS = ("status", "visibility", "updated_at")
"""The columns of a link that the rows of its owners repeat."""


@event.listens_for(Link, "after_update")
def _copy_to_owners(_mapper: Mapper[Link], connection: Connection, link: Link) -> None:
    state = inspect(link)
    if any(state.attrs[name].history.has_changes() for name in COPIED_COLUMNS):
        copies = {name: getattr(link, name) for name in COPIED_COLUMNS}
        connection.execute(update(LinkOwner).where(LinkOwner.link_id == link.id).values(copies))


@event.listens_for(LinkOwner, "before_insert")
def _copy_from_link(_mapper: Mapper[LinkOwner], connection: Connection, owner: LinkOwner) -> None:
    columns = select(*(getattr(Link, name) for name in COPIED_COLUMNS))
    row = connection.execute(columns.where(Link.id == owner.link_id)).one_or_none()
    if row is not None:
        owner.status, owner.visibility, owner.updated_at = row


USER_LINKS: Final = 101
"""The kind of the group of all links that a user owns or co-owns."""


class LinkGroup(Model):
    """A group of links whose clicks are also summed up together.

    A row exists once such sums were requested. `version` is incremented by every change of the
    links in the group, except for new links, which have no clicks (`record_group_changes`). The
    other columns belong to `clicks.rollups.groups`.
    """

    __tablename__ = "link_groups"

    kind: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    version: Mapped[int]
    # The version that the roll-ups of the group belong to; NULL if there are none.
    built_version: Mapped[int | None]
    # The roll-ups have all clicks since `built_from`, in seconds since 1970, and from `window_from`
    # on those of links up to `built_link`. Both times are 0 when they have all clicks.
    built_from: Mapped[int]
    window_from: Mapped[int]
    built_link: Mapped[int]


class LinkShare(Model):
    """A user who may see a link and its analytics."""

    __tablename__ = "link_shares"
    __table_args__ = (Index("ix_link_shares_user", "user_id", "link_id"),)

    link_id: Mapped[int] = mapped_column(
        ForeignKey("links.id"), primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id"), primary_key=True, autoincrement=False
    )
    shared_by: Mapped[int | None]
    created_at: Mapped[datetime]


class LinkInvitation(Model):
    """An open invitation to own a link. One per link and person."""

    __tablename__ = "link_invitations"
    __table_args__ = (
        UniqueConstraint("link_id", "invitee_id"),
        CheckConstraint("role IN ('owner', 'primary')", name="role"),
        Index("ix_link_invitations_invitee", "invitee_id", "id"),
        Index("ix_link_invitations_inviter", "inviter_id"),
        Index("ix_link_invitations_expires_at", "expires_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    link_id: Mapped[int] = mapped_column(ForeignKey("links.id"))
    inviter_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    invitee_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    role: Mapped[str] = mapped_column(String(10))  # an InvitedRole
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class LinkTag(Model):
    """A shared tag on a link. `owner_id` repeats the primary owner, as in `LinkTotals`."""

    __tablename__ = "link_tags"
    __table_args__ = (
        Index("ix_link_tags_tag", "tag_id", "link_id"),
        Index("ix_link_tags_owner", "owner_id", "tag_id", "link_id"),
    )

    link_id: Mapped[int] = mapped_column(
        ForeignKey("links.id"), primary_key=True, autoincrement=False
    )
    tag_id: Mapped[int] = mapped_column(
        ForeignKey("tags.id"), primary_key=True, autoincrement=False
    )
    owner_id: Mapped[int | None]


class LinkChange(Model):
    """A version of a link: who made it, what changed, and a snapshot after the change.

    The first version is written together with the second, because most links never change.
    """

    __tablename__ = "link_history"
    __table_args__ = (CheckConstraint("version > 0", name="version"),)

    link_id: Mapped[int] = mapped_column(
        ForeignKey("links.id"), primary_key=True, autoincrement=False
    )
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    actor_id: Mapped[int | None]
    as_admin: Mapped[bool]  # an administrator who does not own the link
    action: Mapped[str] = mapped_column(String(20))
    changes: Mapped[dict[str, Any]] = mapped_column(JSON)
    snapshot: Mapped[dict[str, Any]] = mapped_column(JSON)


class LinkTombstone(Model):
    """The id of a purged link, which clicks still refer to."""

    __tablename__ = "link_tombstones"

    link_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    purged_at: Mapped[datetime]


class FeedEntry(Model):
    """A change that redirect caches must see. Rows are read by number, and deleted after a while.

    Numbers are assigned before commits, so a lower one may become visible after a higher one:
    readers look back a little.
    """

    __tablename__ = "link_feed"
    __table_args__ = (Index("ix_link_feed_at", "at"),)

    number: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True
    )
    at: Mapped[datetime]
    target_id: Mapped[int]  # 0: all targets
    version: Mapped[int]
    names: Mapped[list[str]] = mapped_column(JSON)  # comparison keys, before and after the change
