"""Request and response schemas of `POST /resolve`."""

from typing import Literal

from pydantic import Field

from refract.core.schemas import Id, InputSchema, OutputSchema


class ResolveIn(InputSchema):
    """A path, with or without a query, or a whole short URL."""

    path: str = Field(
        min_length=1,
        max_length=8192,
        examples=["/jira/PROJ-1", "roadmap", "https://go.example.com/docs/setup?v=2"],
    )


class ResolveOut(OutputSchema):
    """What a visitor with the same permissions would get, and why. Nothing is counted."""

    path: str = Field(description="The resolved path, without scheme and host.")
    outcome: Literal[
        "redirect",
        "preview",
        "qr",
        "list",
        "not_found",
        "does_not_fit",
        "password",
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
    suggestions: list[str] = Field(description="Similar names, if nothing was found.")
