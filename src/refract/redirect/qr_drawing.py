"""QR codes with a style: colors, round modules and the mark of Refract in the middle.

Imported by extraction processes and the command line only, since it loads numpy.
"""

from typing import Any, Final

import numpy as np
import segno

from refract.core.png import encode_png
from refract.links.qr_styles import QrStyle
from refract.redirect.errors import QrSizeTooSmall

_FINDER: Final = 7
_DOT: Final = 0.9
"""Diameter of a round module."""
_LOGO_SHARE: Final = 0.26
"""Part of the width that the mark takes. H restores 30 percent of the code, this covers 7."""
_MARK: Final = (
    *((11, 4.2, 3.6, 18.4), (3.6, 18.4, 18.4, 18.4), (18.4, 18.4, 11, 4.2)),
    *(
        (1, 14.4, 6.2, 13.2),
        (15, 11.9, 22.6, 9.3),
        (15.6, 13.1, 23, 13.2),
        (16.2, 14.3, 22.6, 17.2),
    ),
)
"""The lines of the mark (`icons.svg`) in a square of 24."""
_MARK_SIZE: Final = 24
_MARK_STROKE: Final = 2.2
Coverage = np.ndarray[Any, np.dtype[np.float64]]
Modules = np.ndarray[Any, np.dtype[np.bool_]]


def draw_svg(code: segno.QRCode, style: QrStyle) -> bytes:
    """Return the code as SVG of any size."""
    solid, dots, hole = _split_modules(code, style)
    margin, count = style.margin, len(solid)
    size = count + 2 * margin
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}">',
        f'<path fill="{style.background}" d="M0 0h{size}v{size}h-{size}z"/>',
        f'<path stroke="{style.color}" d="{_trace(solid, margin, 1)}"/>',
    ]
    if dots.any():
        round_ends = f'stroke-width="{_DOT}" stroke-linecap="round"'
        parts.append(f'<path stroke="{style.color}" {round_ends} d="{_trace(dots, margin, 0)}"/>')
    if hole:
        first, width = margin + (count - hole) / 2 + 0.5, hole - 1
        lines = "".join(f"M{x1} {y1}L{x2} {y2}" for x1, y1, x2, y2 in _MARK)
        parts.append(
            f'<path transform="translate({first} {first}) scale({width / _MARK_SIZE:.4f})"'
            f' fill="none" stroke="{style.color}" stroke-width="{_MARK_STROKE}"'
            f' stroke-linecap="round" stroke-linejoin="round" d="{lines}"/>'
        )
    return "".join([*parts, "</svg>"]).encode()


def _trace(modules: Modules, margin: int, length: int) -> str:
    """Return a line in the middle of each module. Those of no length are only their round ends."""
    half = margin + 0.5
    start = margin if length else half
    return "".join(
        f"M{right + start:g} {down + half:g}h{length}" for down, right in np.argwhere(modules)
    )


def draw_png(code: segno.QRCode, style: QrStyle, size: int) -> bytes:
    """Return a square of exactly `size` pixels. Raises `QrSizeTooSmall`."""
    solid, dots, hole = _split_modules(code, style)
    count = len(solid)
    scale = size // (count + 2 * style.margin)
    if not scale:
        raise QrSizeTooSmall(minimum=count + 2 * style.margin)
    drawn = np.kron(solid, np.ones((scale, scale))) + np.kron(dots, _draw_dot(scale))
    if hole:
        _add_mark(drawn, count, hole, scale)
    canvas = np.zeros((size, size))
    first = (size - scale * count) // 2
    canvas[first : first + scale * count, first : first + scale * count] = drawn
    shades = np.rint(canvas.clip(0, 1) * 255).astype(np.uint8)
    palette = _mix(style.background, style.color)
    return encode_png(size, size, map(np.ndarray.tobytes, shades), depth=8, palette=palette)


def _split_modules(code: segno.QRCode, style: QrStyle) -> tuple[Modules, Modules, int]:
    """Return the modules to draw as squares and as dots, and the width of the hole for the mark."""
    dark = np.array([list(row) for row in code.matrix], dtype=bool)
    count, hole = len(dark), 0
    if style.logo:
        hole = int(count * _LOGO_SHARE) // 2 * 2 + 1
        first = (count - hole) // 2
        dark[first : first + hole, first : first + hole] = False
    if style.shape == "square":
        return dark, np.zeros_like(dark), hole
    solid = np.zeros_like(dark)
    for down, right in ((0, 0), (0, count - _FINDER), (count - _FINDER, 0)):
        corner = (slice(down, down + _FINDER), slice(right, right + _FINDER))
        solid[corner] = dark[corner]
    return solid, dark & ~solid, hole


def _draw_dot(scale: int) -> Coverage:
    """Return how much of each pixel of a module its dot covers."""
    middles = np.arange(scale) + 0.5 - scale / 2
    distance = np.hypot(middles[:, None], middles[None, :])
    return np.asarray((_DOT * scale / 2 - distance + 0.5).clip(0, 1))


def _add_mark(drawn: Coverage, count: int, hole: int, scale: int) -> None:
    width = (hole - 1) * scale
    first = (count - hole) * scale // 2 + scale // 2
    unit = width / _MARK_SIZE
    places = (np.arange(width) + 0.5) / unit
    x, y = places[None, :], places[:, None]
    nearest = np.full((width, width), np.inf)
    for x1, y1, x2, y2 in _MARK:
        across, down = x2 - x1, y2 - y1
        along = ((x - x1) * across + (y - y1) * down) / (across**2 + down**2)
        along = along.clip(0, 1)
        nearest = np.minimum(nearest, np.hypot(x - x1 - along * across, y - y1 - along * down))
    covered = ((_MARK_STROKE / 2 - nearest) * unit + 0.5).clip(0, 1)
    drawn[first : first + width, first : first + width] = covered


def _mix(background: str, color: str) -> bytes:
    """Return the palette from the background to the color of the code."""
    ends = [
        [int(text[place : place + 2], 16) for place in (1, 3, 5)] for text in (background, color)
    ]
    share = np.arange(256)[:, None] / 255
    mixed = np.array(ends[0]) * (1 - share) + np.array(ends[1]) * share
    return np.rint(mixed).astype(np.uint8).tobytes()
