"""Options that many commands share. Importing this module is cheap."""

import sys
from pathlib import Path
from typing import Annotated

import typer

AsUser = Annotated[
    str | None,
    typer.Option("--user", help="Act as this user. Default: the owner.", metavar="EMAIL"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Data directory. [env: REFRACT_DATA_DIR]",
        show_default="data",
        readable=False,  # checked later, with a message that says what to do
    ),
]
LinkStart = Annotated[
    str | None,
    typer.Option("--starts", help="When it starts: 12h, 2026-12-31, a time.", metavar="WHEN"),
]
UrlBefore = Annotated[
    str | None,
    typer.Option("--before-url", help="Where it redirects before it starts.", metavar="URL"),
]
UrlAfter = Annotated[
    str | None,
    typer.Option("--after-url", help="Where it redirects after it expired.", metavar="URL"),
]
CardTitle = Annotated[
    str | None, typer.Option("--card-title", help="Title that chats show.", metavar="TEXT")
]
CardDescription = Annotated[
    str | None,
    typer.Option("--card-description", help="Description that chats show.", metavar="TEXT"),
]
CardImage = Annotated[
    str | None,
    typer.Option("--card-image", help="Picture that chats show: an https URL.", metavar="URL"),
]
UtmTemplateName = Annotated[
    str | None,
    typer.Option(
        "--utm", help="UTM template to set in the destination, by name or id.", metavar="TEMPLATE"
    ),
]
UrlAtLimit = Annotated[
    str | None,
    typer.Option(
        "--limit-url", help="Where it redirects once the limit is reached.", metavar="URL"
    ),
]
AskPassword = Annotated[
    bool,
    typer.Option("--password", help="Ask for a password that visitors must enter."),
]


def ask_password() -> str:
    """Ask for a new password, twice, or read a line of piped input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def gather_card(
    title: str | None, description: str | None, image_url: str | None
) -> dict[str, str] | None:
    """Return the given parts of a preview card, or None if none is given."""
    parts = {"title": title, "description": description, "image_url": image_url}
    return {name: value for name, value in parts.items() if value is not None} or None
