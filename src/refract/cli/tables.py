"""Tables for terminals. Text from users can neither set colors nor move the cursor."""

from datetime import datetime

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from refract.core.text import make_excerpt

_PIPED_WIDTH = 4096


def make_console() -> Console:
    """Return a console as wide as the terminal. In a file or pipe, nothing is cut off."""
    console = Console()
    return console if console.is_terminal else Console(width=_PIPED_WIDTH)


def make_table(*titles: str) -> Table:
    """Return a table that scripts may read: its cells are wrapped, not cut off."""
    return Table(*(Column(title, overflow="fold") for title in titles))


def make_safe_text(text: str | None, max_length: int = 200, style: str = "") -> Text:
    """Return text from users, shortened and without control characters."""
    return Text(make_excerpt(text or "", max_length), style=style)


def format_time(moment: datetime | None) -> str:
    """Return a time to the minute, or a dash."""
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "–"
