"""Reports as the API takes and shows them."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from refract.core.schemas import Id, InputSchema, OutputSchema
from refract.reports.models import ReportReason, ReportStatus

MAX_DETAILS = 1_000
MAX_TARGET = 2_000


def _none_if_empty(text: str) -> str | None:
    return text or None


ReportDetails = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=MAX_DETAILS),
    AfterValidator(_none_if_empty),
]


class ReportCreate(InputSchema):
    """What is reported, and why."""

    target: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TARGET)
    ] = Field(
        description="The short URL, or the name or code in it.",
        examples=["https://go.example.com/roadmap"],
    )
    reason: ReportReason
    details: ReportDetails | None = Field(
        default=None, description="What an administrator should know."
    )


class ReportReceived(OutputSchema):
    """The answer to every report, whether or not its target exists."""

    status: Literal["received"] = "received"


class ReportGroupOut(OutputSchema):
    """All reports of one target. Actions take its `id`."""

    id: Id
    status: ReportStatus
    kind: Literal["link", "list"]
    target_id: Id
    name: str = Field(description="Under which it was reported.", examples=["roadmap"])
    count: int = Field(description="How many reports there are, at most one from each network.")
    reasons: dict[ReportReason, int] = Field(examples=[{"phishing": 2}])
    details: list[str] = Field(description="What the latest reporters wrote.")
    first_at: datetime
    last_at: datetime
    outcome: str | None = Field(
        description="What was done; null while it is open.", examples=["dismiss"]
    )
    title: str | None
    state: str = Field(
        description=(
            "What became of the target: a link's state, a list's status, `deleted` or `gone`."
        ),
        examples=["active"],
    )
    destination: str | None = Field(
        description="Where a link leads, in ASCII.", examples=["https://xn--e1awd7f.com/login"]
    )
    hosts: list[str] = Field(
        description="The hosts it leads to, in ASCII.", examples=[["xn--e1awd7f.com"]]
    )
    owner_id: Id | None
    owner_email: str | None = Field(examples=["ada@example.com"])
    owner_status: str | None = Field(examples=["active"])


class ReportGroupPage(OutputSchema):
    """A page of the queue. `open` counts every report that waits."""

    items: list[ReportGroupOut]
    next_cursor: str | None
    open: int
