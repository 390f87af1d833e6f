"""The picture that others show beside a link to a list: its title, its address and its colours, drawn here and fetched from nowhere. Pure.

A PNG with a palette: sixteen steps from paper to ink, sixteen from paper to a softer ink, and four rays. A letter is a small block of
steps that is copied to its place, so a picture costs about as much as compressing it. Decision 0019 says why it is done this way.
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
from refract.lists.palettes import COLOURS, Palette

DRAW_CARD: Final = ExtractionTask("card", "refract.lists.card:draw_card", cpu_seconds=2, wall_seconds=20.0, max_output=1024 * 1024)

WIDTH: Final = 1200
HEIGHT: Final = 630
STEPS: Final = 16
_MARGIN: Final = 88
_BAND: Final = 24
_MOST_LINES: Final = 3
_FONT: Final = Path(__file__).with_name("card_font.bin")
_INK, _SOFT, _RAYS = 0, STEPS, 2 * STEPS
_SELECTORS: Final = frozenset("\ufe0e\ufe0f")  # they only choose how the sign before them looks
_NOTHING: Final = "\x00"
MARK: Final = "\ue000"
"""Our own sign, kept among the letters."""


@dataclass(frozen=True, slots=True)
class Glyph:
    """A letter as a block of steps, one byte each. `left` and `top` are measured from where the pen stands, on the base line."""

    left: int
    top: int
    width: int
    advance: float
    rows: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Face:
    """Letters of one size."""

    line: int
    tracking: float
    glyphs: dict[str, Glyph]

    def length(self, text: str) -> float:
        return sum(self.glyphs[sign].advance + self.tracking for sign in text)

    def can(self, text: str) -> bool:
        return all(sign in self.glyphs for sign in text)

    def fitted(self, text: str, room: float) -> str:
        """The text, cut so that it fits with an ellipsis."""
        if self.length(text) <= room:
            return text
        while text and self.length(text + "…") > room:
            text = text[:-1]
        return text.rstrip() + "…"

    def lines(self, text: str, room: float, most: int) -> list[str]:
        """The text in at most so many lines, broken between words where that is possible; the last one is cut."""
        lines: list[str] = []
        words = text.split()
        while words and len(lines) < most - 1:
            taken = 1
            while taken < len(words) and self.length(" ".join(words[: taken + 1])) <= room:
                taken += 1
            if self.length(words[0]) > room:  # one endless word: the rest of it goes to the next line
                fits = next(cut for cut in range(len(words[0]), 0, -1) if cut == 1 or self.length(words[0][:cut]) <= room)
                words[:1] = [words[0][:fits], words[0][fits:]]
                taken = 1
            lines.append(" ".join(words[:taken]))
            words = words[taken:]
        return [*lines, self.fitted(" ".join(words), room)] if words else lines


@lru_cache(maxsize=1)
def faces() -> dict[str, Face]:
    """The letters, read when the first picture is drawn. `tools/card_font.py` makes the file."""
    head, _, blocks = zlib.decompress(_FONT.read_bytes()).partition(b"\n")
    found = {}
    for name, face in json.loads(head).items():
        glyphs = {}
        for sign, (at, left, top, width, height, advance) in face["glyphs"].items():
            rows = tuple(blocks[at + row * width : at + (row + 1) * width] for row in range(height))
            glyphs[sign] = Glyph(left, top, width, advance, rows)
        found[name] = Face(face["line"], face["tracking"], glyphs)
    return found


def draw_card(body: bytes, *, address: str, facts: str, palette: Palette) -> bytes:
    """Draw the picture of the list whose title is `body`. Runs in the extraction process."""
    return draw(body.decode(), address, facts, palette)


def draw(title: str, address: str, facts: str, palette: Palette) -> bytes:
    """The picture. A title in letters that we do not have gives way to the address, which is always plain."""
    large, small = faces()["large"], faces()["small"]
    title = _plain(title, large)
    if not large.can(title):
        title, address = address, ""
    canvas = [bytearray(WIDTH) for _ in range(HEIGHT)]
    room = WIDTH - 2 * _MARGIN
    pen = _write(canvas, small, MARK, _MARGIN, _MARGIN + 36, _INK)
    _write(canvas, small, small.fitted(address, WIDTH - _MARGIN - pen - 20), pen + 20, _MARGIN + 34, _SOFT)
    lines = large.lines(title, room, _MOST_LINES)
    base = 300 + (_MOST_LINES - len(lines)) * large.line // 2
    for number, line in enumerate(lines):
        _write(canvas, large, line, _MARGIN - 4, base + number * large.line, _INK)
    _write(canvas, small, small.fitted(facts, room), _MARGIN, HEIGHT - _BAND - 56, _SOFT)
    band = b"".join(bytes([_RAYS + ray]) * (WIDTH // 4) for ray in range(4))
    canvas[HEIGHT - _BAND :] = [bytearray(band)] * _BAND
    return encode_png(WIDTH, HEIGHT, map(bytes, canvas), depth=8, palette=_shades(palette))


def _plain(title: str, face: Face) -> str:
    """One line; signs without which it says the same (emoji, say) are left out when we do not have them, letters never."""
    kept = (sign for sign in unicodedata.normalize("NFC", title) if sign in face.glyphs or unicodedata.category(sign)[0] in "LNMZC")
    line = " ".join("".join(sign for sign in kept if unicodedata.category(sign) not in ("Cf", "Cc") and sign not in _SELECTORS).split())
    return line or _NOTHING


def _write(canvas: list[bytearray], face: Face, text: str, x: float, base: int, ink: int) -> float:
    """Put letters on a line; the answer is where the pen stands afterwards. Letters that overlap add up to no more than ink."""
    shift = bytes([0, *range(ink + 1, ink + STEPS)]) + bytes(256 - STEPS)
    for sign in text:
        glyph = face.glyphs[sign]
        left = round(x) + glyph.left
        for number, row in enumerate(glyph.rows, base + glyph.top):
            target = canvas[number]
            placed = row.translate(shift)
            under = target[left : left + glyph.width]
            target[left : left + glyph.width] = bytes(map(max, placed, under)) if any(under) else placed
        x += glyph.advance + face.tracking
    return x


def _shades(palette: Palette) -> bytes:
    colours = COLOURS[palette]
    paper = _rgb(colours.paper)
    steps = [_between(paper, _rgb(ink), step / (STEPS - 1)) for ink in (colours.ink, colours.soft) for step in range(STEPS)]
    return b"".join([*steps, *map(_rgb, colours.rays)])


def _rgb(colour: str) -> bytes:
    return bytes.fromhex(colour.removeprefix("#"))


def _between(paper: bytes, ink: bytes, part: float) -> bytes:
    return bytes(round(a + (b - a) * part) for a, b in zip(paper, ink, strict=True))
