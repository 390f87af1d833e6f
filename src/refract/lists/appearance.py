"""The looks of public lists that their owners choose from.

The colours of palettes here are those of the share image; those of the page are in css/tokens.css.
Covers are drawn in templates/_cover.html.
"""

import re
import zlib
from dataclasses import dataclass
from typing import Final, Literal, get_args

Palette = Literal["cobalt", "ocean", "forest", "clay", "plum", "ink"]
DEFAULT_PALETTE: Final[Palette] = "cobalt"
"""The palette of a list without a choice."""
Layout = Literal["list", "cards", "compact"]
DEFAULT_LAYOUT: Final[Layout] = "list"
Cover = Literal["none", "rays", "waves", "hills", "orbits", "tiles"]
DEFAULT_COVER: Final[Cover] = "none"


@dataclass(frozen=True, slots=True)
class PaletteColours:
    """Background, text colours, and the four rays of the band at the bottom."""

    paper: str
    ink: str
    soft: str
    rays: tuple[str, str, str, str]


PALETTE_COLOURS: Final[dict[Palette, PaletteColours]] = {
    "cobalt": PaletteColours(
        "#faf9f7", "#1c1b18", "#57534a", ("#2f4bd6", "#12935a", "#e0a300", "#e0612b")
    ),
    "ocean": PaletteColours(
        "#f1f7f9", "#14252b", "#47606a", ("#0b6580", "#1fa0a8", "#6bbf8f", "#e3b23c")
    ),
    "forest": PaletteColours(
        "#f4f7f2", "#172219", "#4b5c4e", ("#1d6b41", "#6b9a1f", "#0f8a86", "#d0a215")
    ),
    "clay": PaletteColours(
        "#fbf5f0", "#2b1a12", "#6b5144", ("#b0451d", "#e0a02a", "#8a6a52", "#b8405f")
    ),
    "plum": PaletteColours(
        "#f9f5fa", "#25172a", "#62506a", ("#7a2e8f", "#c2417f", "#5b53c9", "#e08a4a")
    ),
    "ink": PaletteColours(
        "#ffffff", "#111111", "#555555", ("#1a1a1a", "#5c5c5c", "#9a9a9a", "#d0d0d0")
    ),
}
PALETTE_NAMES: Final[tuple[Palette, ...]] = get_args(Palette)
LAYOUT_NAMES: Final[tuple[Layout, ...]] = get_args(Layout)
COVER_NAMES: Final[tuple[Cover, ...]] = get_args(Cover)

_WORD = re.compile(r"\w+")
_SECOND_LEVELS = frozenset({"ac", "co", "com", "edu", "gov", "ne", "net", "or", "org"})
"""Labels below a country that are no site's own name: example.co.uk."""


def build_monogram(title: str | None, host: str) -> str:
    """Return one or two letters for a page: initials of its title, or the start of its site's name.

    The last number of an IP address stands for it: neighbours differ there.
    """
    words: list[str] = _WORD.findall(title or "")
    if len(words) > 1:
        return (words[0][0] + words[1][0]).upper()
    if words:
        return words[0][:2].capitalize()
    labels = host.strip("[]").replace(":", ".").split(".")
    if labels[-1].isdigit() or ":" in host:
        return labels[-1][-2:]
    name = labels[0]
    if len(labels) > 1:
        short = len(labels) > 2 and labels[-2] in _SECOND_LEVELS
        name = labels[-3] if short else labels[-2]
    return name[:2].capitalize()


def choose_ray(host: str) -> int:
    """Return which of the palette's four colours the entries of a host have, from 1."""
    return zlib.crc32(host.removeprefix("www.").encode()) % 4 + 1
