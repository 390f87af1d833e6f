"""Output for terminals. Text from users can neither set colors nor move the cursor."""

from datetime import datetime

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from refract.core.text import make_excerpt

_PIPED_WIDTH = 160
UNCUT_WIDTH = 4096
"""The width of a piped table whose values scripts read: nothing is cut off."""


def make_console(piped_width: int = _PIPED_WIDTH) -> Console:
    """Return the terminal as wide as it is; a file or a pipe gets lines that are not broken too soon."""
    found = Console()
    return found if found.is_terminal else Console(width=piped_width)


def make_safe_text(text: str | None, most: int = 200, style: str = "") -> Text:
    return Text(make_excerpt(text or "", most), style=style)


def format_time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "–"


def print_json(shape: BaseModel) -> None:
    typer.echo(shape.model_dump_json(indent=2))
