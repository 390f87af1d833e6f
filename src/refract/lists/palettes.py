"""Palettes of public lists, as used in the share image.

The colours of the page are in css/tokens.css.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Palette = Literal["cobalt", "ocean", "forest", "clay", "plum", "ink"]
DEFAULT_PALETTE: Final[Palette] = "cobalt"
"""The palette of a list without a choice."""


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
