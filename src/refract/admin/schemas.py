"""Schemas of the admin API."""

from datetime import datetime
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field

from refract.core.schemas import Id, InputSchema, OutputSchema
from refract.identity.models import AccountTombstone
from refract.identity.tombstones import get_reference
from refract.lists.schemas import ListSummary


class PersonOut(OutputSchema):
    """An account."""

    id: Id
    issuer: str = Field(examples=["https://id.example.com"])
    email: str = Field(examples=["ada@example.com"])
    email_verified: bool
    display_name: str = Field(examples=["Ada Lovelace"])
    nickname: str | None = Field(examples=["Ada"])
    plan: Literal["free", "pro"]
    role: Literal["user", "admin"]
    status: Literal["active", "suspended", "deleted"]
    held_at: datetime | None = Field(
        description="Since when their links and lists are on hold; null where they are not."
    )
    created_at: datetime
    last_sync_at: datetime


class PersonPage(OutputSchema):
    """A page of people."""

    items: list[PersonOut]
    next_cursor: str | None


class PersonPatch(InputSchema):
    """Changes of an account; absent means unchanged. Suspension takes effect immediately."""

    status: Literal["active", "suspended"] | None = None
    keep_links: bool = Field(
        default=False,
        description=(
            "With `status: suspended`: links and lists go on working. Otherwise they are on hold"
            " until the person is active again."
        ),
    )
    role: Literal["user", "admin"] | None = None
    plan: Literal["free", "pro"] | None = None


class BarredOut(OutputSchema):
    """A deleted account whose owner can't sign up again."""

    id: Id
    reference: str = Field(
        examples=["4f3a0c11d2be"], description="What the person is told when they try to sign in."
    )
    user_id: Id = Field(
        description="The id of the account that was deleted, as the audit log has it."
    )
    created_at: datetime

    @classmethod
    def from_tombstone(cls, tombstone: AccountTombstone) -> Self:
        """Return a tombstone with its reference."""
        return cls(
            id=tombstone.id,
            reference=get_reference(tombstone),
            user_id=tombstone.user_id,
            created_at=tombstone.created_at,
        )


class BarredPage(OutputSchema):
    """A page of deleted accounts."""

    items: list[BarredOut]
    next_cursor: str | None


class LinkDisposition(StrEnum):
    """What happens to links without co-owners."""

    DELETE = "delete"
    REASSIGN = "reassign"


class JobOut(OutputSchema):
    """A job that has failed and is not retried automatically."""

    id: Id
    kind: str = Field(examples=["links.recheck"])
    status: str = Field(examples=["DEAD"])
    attempt_count: int
    max_tries: int
    last_error_code: str | None = Field(examples=["TIMEOUT"])
    last_error_message: str | None = Field(examples=["The other side did not answer in time."])
    created_at: datetime
    run_at: datetime
    finished_at: datetime | None


class QueueDepth(OutputSchema):
    """The number of jobs of a kind with a status."""

    kind: str = Field(examples=["links.recheck"])
    status: str = Field(examples=["PENDING"])
    jobs: int


class JobPage(OutputSchema):
    """Failed jobs, and the depth of the queue."""

    items: list[JobOut]
    next_cursor: str | None
    depth: list[QueueDepth]
    oldest_due_seconds: float


class FiguresOut(OutputSchema):
    """Clicks received: accepted = stored + pending + not kept; and the last verification."""

    accepted: int
    stored: int
    pending: int
    not_kept: int
    events: int | None = Field(description="Stored events when last verified; null before.")
    totals: int | None = Field(description="Clicks in the totals when last verified; null before.")
    drift: list[str] = Field(
        examples=[[]], description="Differences that the last verification found."
    )
    verified_at: datetime | None = Field(description="When clicks were last verified, if ever.")
    verifying: bool = Field(description="Whether a verification is waiting or running.")


class AdminListOut(ListSummary):
    """A list of any user. One without an owner was created without an account."""

    owner_id: Id | None
    owner_email: str | None = Field(examples=["ada@example.com"])
    hosts: list[str] = Field(
        description="Some of the hosts it leads to.", examples=[["example.com"]]
    )
    removed_at: datetime | None = Field(
        description=(
            "When it was deleted; its name is kept, and it can be brought back, for 24 hours."
        )
    )


class AdminListPage(OutputSchema):
    """A page of all lists."""

    items: list[AdminListOut]
    next_cursor: str | None


class ReportDecisionIn(InputSchema):
    """The domain to block, where a list has several hosts."""

    domain: str | None = Field(default=None, max_length=255, examples=["bad.example"])


class ReportDecisionOut(OutputSchema):
    """A decision on the reports of a target."""

    id: Id
    kind: Literal["link", "list"]
    target_id: Id
    action: str = Field(examples=["dismiss"])


class AuditOut(OutputSchema):
    """An entry of the audit log."""

    id: Id
    at: datetime
    actor_id: Id | None
    action: str = Field(examples=["key.created"])
    target: str | None = Field(examples=["refract_4fG7h2Kq"])
    detail: str | None = Field(examples=["command line"])
    request_id: str | None = Field(examples=["0f8b6c1d2e3f4a5b"])
    key_prefix: str | None = Field(
        description="The API key that the actor used, by its first characters.",
        examples=["refract_4fG7h2Kq"],
    )


class AuditPage(OutputSchema):
    """A page of the audit log."""

    items: list[AuditOut]
    next_cursor: str | None
