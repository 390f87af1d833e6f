"""Request and response schemas of `POST /resolve`."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from refract.core.schemas import Id, InputSchema, OutputSchema, Timestamp
from refract.links.rules.schemas import Country

VisitorText = Annotated[str, StringConstraints(max_length=2000)]


class PretendedVisitor(InputSchema):
    """A visitor to decide rules for. What is omitted is unknown."""

    agent: VisitorText = Field(default="", description="The User-Agent header.")
    languages: VisitorText = Field(
        default="", description="The Accept-Language header.", examples=["de-AT,de;q=0.9"]
    )
    referrer: VisitorText = Field(default="", description="The Referer header.")
    country: Country | None = Field(default=None, examples=["AT"])
    at: Timestamp | None = Field(default=None, description="The time of the visit. Omitted: now.")
    seed: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="", description="Any text. Another one is another visitor in shares."
    )


class ResolveIn(InputSchema):
    """A path, with or without a query, or a whole short URL."""

    path: str = Field(
        min_length=1,
        max_length=8192,
        examples=["/jira/PROJ-1", "roadmap", "https://go.example.com/docs/setup?v=2"],
    )
    visitor: PretendedVisitor = Field(
        default_factory=PretendedVisitor, examples=[{"country": "AT"}]
    )


class ConditionOut(OutputSchema):
    """Whether a condition of a rule holds for the visitor."""

    condition: str = Field(examples=["countries"])
    matched: bool
    visitor: str = Field(description="What the visitor has instead.", examples=["AT"])


class RuleResult(OutputSchema):
    """What a rule says about the visitor."""

    number: int
    destination: str
    matched: bool = Field(description="Whether all of its conditions hold.")
    blocked: bool = Field(description="Whether it is skipped: its destination is blocked.")
    conditions: list[ConditionOut]


class ResolveOut(OutputSchema):
    """What a visitor with the same permissions would get, and why. Nothing is counted."""

    path: str = Field(description="The resolved path, without scheme and host.")
    outcome: Literal[
        "redirect",
        "preview",
        "card",
        "qr",
        "list",
        "not_found",
        "does_not_fit",
        "password",
        "limited",
        "limit_reached",
        "scheduled",
        "expired",
        "disabled",
        "deleted",
        "blocked",
        "on_hold",
        "own_page",
    ]
    status: int = Field(description="The HTTP status of the response.", examples=[302])
    location: str | None = Field(
        description="The destination, exactly as it would be sent.",
        examples=["https://jira.example/browse/PROJ-1"],
    )
    why: str = Field(
        examples=[
            (
                "The name /jira goes to https://jira.example/browse/{1}; the path fills its"
                " placeholders."
            )
        ]
    )
    name: str | None = Field(description="The name or code that was found.", examples=["jira"])
    link_id: Id | None = Field(description="The link that was found.")
    rule: int | None = Field(
        description="The number of the rule that decided. Null: the destination of the link."
    )
    rules: list[RuleResult] | None = Field(
        description="Every rule of the link, in order, for callers who may edit it."
    )
    headers: dict[str, str] | None = Field(
        description="The headers of the redirect, without `Date`."
    )
    suggestions: list[str] = Field(description="Similar names, if nothing was found.")
