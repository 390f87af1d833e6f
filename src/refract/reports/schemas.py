"""Request and response schemas of reports."""

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
    """A new report."""

    target: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TARGET)
    ] = Field(
        description="The short URL, or the name or code in it.",
        examples=["https://go.example.com/roadmap"],
    )
    reason: ReportReason
    details: ReportDetails | None = Field(
        default=None, description="Details for the administrators."
    )


class ReportReceived(OutputSchema):
    """The response to every report, whether or not its target exists."""

    status: Literal["received"] = "received"


class ReportGroupOut(OutputSchema):
    """All reports of one target. Actions take its `id`."""

    id: Id
    status: ReportStatus
    kind: Literal["link", "list"]
    target_id: Id
    name: str = Field(description="The name under which it was reported.", examples=["roadmap"])
    domain: str | None = Field(
        description="The domain of that name; null for the default domain.", examples=["sho.rt"]
    )
    url: str = Field(
        description="The short URL with that name.", examples=["https://go.example.com/roadmap"]
    )
    count: int = Field(description="Number of reports, at most one per network.")
    reasons: dict[ReportReason, int] = Field(examples=[{"phishing": 2}])
    details: list[str] = Field(description="The latest report texts.")
    first_at: datetime
    last_at: datetime
    outcome: str | None = Field(
        description="The decision; null while it is open.", examples=["dismiss"]
    )
    title: str | None
    state: str = Field(
        description=("The target now: a link's state, a list's status, `deleted` or `gone`."),
        examples=["active"],
    )
    destination: str | None = Field(
        description="The destination of a link, in ASCII.",
        examples=["https://xn--e1awd7f.com/login"],
    )
    hosts: list[str] = Field(
        description="The hosts of its destinations, in ASCII.", examples=[["xn--e1awd7f.com"]]
    )
    owner_id: Id | None
    owner_email: str | None = Field(examples=["ada@example.com"])
    owner_status: str | None = Field(examples=["active"])
    owner_team: str | None = Field(
        description="The handle of the team that owns it.", examples=["marketing"]
    )


class ReportGroupPage(OutputSchema):
    """A page of the queue. `open` is the number of open reports."""

    items: list[ReportGroupOut]
    next_cursor: str | None
    open: int
