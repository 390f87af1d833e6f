"""The share image of a list: its title, URL and colours, drawn without fetching anything. Pure.

A PNG with a palette: sixteen steps from paper to ink, sixteen from paper to a softer ink, and four
rays. A letter is a small block of steps that is copied to its place, so an image costs about as
much as compressing it. Decision 0019 gives the reasons.
"""

import json
import unicodedata
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from refract.core.extraction.tasks import ExtractionTask
from refract.core.png import encode_png
from refract.lists.appearance import PALETTE_COLOURS, Palette

DRAW_CARD: Final = ExtractionTask(
    "card", "refract.lists.card:draw_card", cpu_seconds=2, wall_seconds=20.0, max_output=1024 * 1024
)

WIDTH: Final = 1200
HEIGHT: Final = 630
SHADE_STEPS: Final = 16
_MARGIN: Final = 88
_BAND: Final = 24
_MAX_LINES: Final = 3
_FONT: Final = Path(__file__).with_name("card_font.bin")
_INK, _SOFT, _RAYS = 0, SHADE_STEPS, 2 * SHADE_STEPS
# They only choose how the character before them looks.
_VARIATION_SELECTORS: Final = frozenset("\ufe0e\ufe0f")
_EMPTY_TITLE: Final = "\x00"
LOGO_CHARACTER: Final = "\ue000"
"""The logo, stored among the glyphs."""


@dataclass(frozen=True, slots=True)
class Glyph:
    """A character as a block of steps, one byte each.

    `left` and `top` are measured from the pen, which stands on the base line.
    """

    left: int
    top: int
    width: int
    advance: float
    rows: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class FontFace:
    """Glyphs of one size."""

    line: int
    tracking: float
    glyphs: dict[str, Glyph]

    def measure(self, text: str) -> float:
        return sum(self.glyphs[sign].advance + self.tracking for sign in text)

    def can_render(self, text: str) -> bool:
        return all(sign in self.glyphs for sign in text)

    def truncate(self, text: str, room: float) -> str:
        """Return the text, cut so that it fits with an ellipsis."""
        if self.measure(text) <= room:
            return text
        while text and self.measure(text + "…") > room:
            text = text[:-1]
        return text.rstrip() + "…"

    def wrap(self, text: str, room: float, limit: int) -> list[str]:
        """Return at most `limit` lines, broken between words if possible; the last one is cut."""
        lines: list[str] = []
        words = text.split()
        while words and len(lines) < limit - 1:
            taken = 1
            while taken < len(words) and self.measure(" ".join(words[: taken + 1])) <= room:
                taken += 1
            if self.measure(words[0]) > room:  # a long word: the rest goes to the next line
                fits = next(
                    cut
                    for cut in range(len(words[0]), 0, -1)
                    if cut == 1 or self.measure(words[0][:cut]) <= room
                )
                words[:1] = [words[0][:fits], words[0][fits:]]
                taken = 1
            lines.append(" ".join(words[:taken]))
            words = words[taken:]
        return [*lines, self.truncate(" ".join(words), room)] if words else lines


@lru_cache(maxsize=1)
def load_faces() -> dict[str, FontFace]:
    """Return the fonts, read for the first image. `tools/card_font.py` writes the file."""
    head, _, blocks = zlib.decompress(_FONT.read_bytes()).partition(b"\n")
    found = {}
    for name, face in json.loads(head).items():
        glyphs = {}
        for sign, (at, left, top, width, height, advance) in face["glyphs"].items():
            rows = tuple(blocks[at + row * width : at + (row + 1) * width] for row in range(height))
            glyphs[sign] = Glyph(left, top, width, advance, rows)
        found[name] = FontFace(face["line"], face["tracking"], glyphs)
    return found


def draw_card(body: bytes, *, address: str, facts: str, palette: Palette) -> bytes:
    """Draw the image of the list whose title is `body`. Runs in the extraction process."""
    return render_card(body.decode(), address, facts, palette)


def render_card(title: str, address: str, facts: str, palette: Palette) -> bytes:
    """Return the image. A title with missing glyphs is replaced by the URL, which is ASCII."""
    large, small = load_faces()["large"], load_faces()["small"]
    title = _normalise_title(title, large)
    if not large.can_render(title):
        title, address = address, ""
    canvas = [bytearray(WIDTH) for _ in range(HEIGHT)]
    room = WIDTH - 2 * _MARGIN
    pen = _draw_text(canvas, small, LOGO_CHARACTER, _MARGIN, _MARGIN + 36, _INK)
    _draw_text(
        canvas,
        small,
        small.truncate(address, WIDTH - _MARGIN - pen - 20),
        pen + 20,
        _MARGIN + 34,
        _SOFT,
    )
    lines = large.wrap(title, room, _MAX_LINES)
    base = 300 + (_MAX_LINES - len(lines)) * large.line // 2
    for number, line in enumerate(lines):
        _draw_text(canvas, large, line, _MARGIN - 4, base + number * large.line, _INK)
    _draw_text(canvas, small, small.truncate(facts, room), _MARGIN, HEIGHT - _BAND - 56, _SOFT)
    band = b"".join(bytes([_RAYS + ray]) * (WIDTH // 4) for ray in range(4))
    canvas[HEIGHT - _BAND :] = [bytearray(band)] * _BAND
    return encode_png(WIDTH, HEIGHT, map(bytes, canvas), depth=8, palette=_build_palette(palette))


def _normalise_title(title: str, face: FontFace) -> str:
    """Return the title as one line, without symbols (emoji) that the font lacks."""
    kept = (
        sign
        for sign in unicodedata.normalize("NFC", title)
        if sign in face.glyphs or unicodedata.category(sign)[0] in "LNMZC"
    )
    line = " ".join(
        "".join(
            sign
            for sign in kept
            if unicodedata.category(sign) not in ("Cf", "Cc") and sign not in _VARIATION_SELECTORS
        ).split()
    )
    return line or _EMPTY_TITLE


def _draw_text(
    canvas: list[bytearray], face: FontFace, text: str, x: float, base: int, ink: int
) -> float:
    """Draw text and return the new x position of the pen. Overlapping letters never exceed ink."""
    shift = bytes([0, *range(ink + 1, ink + SHADE_STEPS)]) + bytes(256 - SHADE_STEPS)
    for sign in text:
        glyph = face.glyphs[sign]
        left = round(x) + glyph.left
        for number, row in enumerate(glyph.rows, base + glyph.top):
            target = canvas[number]
            placed = row.translate(shift)
            under = target[left : left + glyph.width]
            target[left : left + glyph.width] = (
                bytes(map(max, placed, under)) if any(under) else placed
            )
        x += glyph.advance + face.tracking
    return x


def _build_palette(palette: Palette) -> bytes:
    colours = PALETTE_COLOURS[palette]
    paper = _parse_colour(colours.paper)
    steps = [
        _blend_colours(paper, _parse_colour(ink), step / (SHADE_STEPS - 1))
        for ink in (colours.ink, colours.soft)
        for step in range(SHADE_STEPS)
    ]
    return b"".join([*steps, *map(_parse_colour, colours.rays)])


def _parse_colour(colour: str) -> bytes:
    return bytes.fromhex(colour.removeprefix("#"))


def _blend_colours(paper: bytes, ink: bytes, part: float) -> bytes:
    return bytes(round(a + (b - a) * part) for a, b in zip(paper, ink, strict=True))
