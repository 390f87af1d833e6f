"""QR codes of short URLs, as scalable SVG or as PNG of an exact size.

Drawn in an extraction process.
"""

import io
from dataclasses import replace
from typing import cast

import segno

from refract.core.extraction.tasks import ExtractionTask, TaskRefused
from refract.core.png import encode_png
from refract.links.qr_styles import PLAIN_STYLE, QrStyle, parse_style
from refract.redirect.errors import QrSizeTooSmall, UrlTooLongForQr

QUIET_ZONE = 4
"""White modules around the code, as the standard requires."""

MIN_SIZE = 64
MAX_SIZE = 2048
MAX_TEXT = 300
"""Maximum characters of a URL.

A larger code cannot be read from paper, and takes a tenth of a second to draw.
"""

DRAW_SVG = ExtractionTask(
    "qr_svg", "refract.redirect.qr:draw_svg", cpu_seconds=2, wall_seconds=20.0, max_output=64 * 1024
)
DRAW_PNG = ExtractionTask(
    "qr_png",
    "refract.redirect.qr:draw_png",
    cpu_seconds=2,
    wall_seconds=20.0,
    max_output=1024 * 1024,
)


DRAW_STYLED_SVG = replace(
    DRAW_SVG, function="refract.redirect.qr:draw_styled_svg", max_output=512 * 1024
)
DRAW_STYLED_PNG = replace(
    DRAW_PNG, function="refract.redirect.qr:draw_styled_png", max_output=4 * 1024 * 1024
)


def draw_svg(body: bytes) -> bytes:
    """Draw the text in `body`. Runs in the extraction process."""
    return render_svg(body.decode())


def draw_png(body: bytes, *, size: int) -> bytes:
    """Draw the text in `body`, or refuse with the minimum size it needs.

    Runs in the extraction process.
    """
    try:
        return png(body.decode(), size)
    except QrSizeTooSmall as exc:
        raise TaskRefused(exc.code, minimum=cast("int", exc.facts["minimum"])) from exc


def draw_styled_svg(body: bytes, *, style: str) -> bytes:
    """Draw the text in `body` in a style, as JSON. Runs in the extraction process."""
    return render_styled_svg(body.decode(), parse_style(style) or PLAIN_STYLE)


def draw_styled_png(body: bytes, *, size: int, style: str) -> bytes:
    """Do the same as PNG, or refuse with the minimum size it needs."""
    try:
        return render_styled_png(body.decode(), size, parse_style(style) or PLAIN_STYLE)
    except QrSizeTooSmall as exc:
        raise TaskRefused(exc.code, minimum=cast("int", exc.facts["minimum"])) from exc


def make_qr_code(text: str, correction: str = "M") -> segno.QRCode:
    """Return the code; with error correction M it is robust and still small."""
    if len(text) > MAX_TEXT:
        raise UrlTooLongForQr
    return segno.make_qr(text, error=correction, boost_error=False)


def render_styled_svg(text: str, style: QrStyle) -> bytes:
    from refract.redirect import qr_drawing  # noqa: PLC0415 - loads numpy, only where it draws

    return qr_drawing.draw_svg(make_qr_code(text, style.effective_correction), style)


def render_styled_png(text: str, size: int, style: QrStyle) -> bytes:
    from refract.redirect import qr_drawing  # noqa: PLC0415 - as above

    return qr_drawing.draw_png(make_qr_code(text, style.effective_correction), style, size)


def render_svg(text: str) -> bytes:
    out = io.BytesIO()
    make_qr_code(text).save(
        out,
        kind="svg",
        border=QUIET_ZONE,
        light="#fff",
        xmldecl=False,
        svgclass=None,
        lineclass=None,
        omitsize=True,
    )
    return out.getvalue()


def png(text: str, size: int) -> bytes:
    """Return a square of exactly `size` pixels: whole pixels per module, the rest is white.

    segno's own PNG is a whole number of modules wide, so it cannot have any size; given single
    pixels as modules it takes 0.7 s of CPU for 2,048 of them, against 10 ms here. Raises
    `QrSizeTooSmall` if a module would be less than a pixel.
    """
    modules = make_qr_code(text).matrix
    scale = size // (len(modules) + 2 * QUIET_ZONE)
    if not scale:
        raise QrSizeTooSmall(minimum=len(modules) + 2 * QUIET_ZONE)
    margin = (size - scale * len(modules)) // 2
    rest = size - margin - scale * len(modules)
    width = (size + 7) // 8
    blank = b"\xff" * width
    rows = [blank] * margin
    for row in modules:
        bits = "1" * margin + "".join(("0" if dark else "1") * scale for dark in row)
        rows += [int(bits.ljust(8 * width, "1"), 2).to_bytes(width, "big")] * scale
    return encode_png(size, size, [*rows, *[blank] * rest], depth=1)
