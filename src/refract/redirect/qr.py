"""QR codes of short URLs: SVG that scales, or a PNG of exactly the size that was asked for. Drawn in an extraction process."""

import io
import struct
import zlib
from typing import cast

import segno

from refract.core.extraction.tasks import ExtractionTask, TaskRefused
from refract.redirect.errors import QrTooDense, QrTooLong

QUIET = 4
"""Modules of white around the code, as the standard wants it."""

LEAST = 64
MOST = 2048
MAX_TEXT = 300
"""Characters of an address. A code of more cannot be read from paper, and takes a tenth of a second to draw."""

DRAW_SVG = ExtractionTask("qr_svg", "refract.redirect.qr:draw_svg", cpu_seconds=2, wall_seconds=20.0, max_output=64 * 1024)
DRAW_PNG = ExtractionTask("qr_png", "refract.redirect.qr:draw_png", cpu_seconds=2, wall_seconds=20.0, max_output=1024 * 1024)


def draw_svg(body: bytes) -> bytes:
    """Draw the text in `body`. Runs in the extraction process."""
    return svg(body.decode())


def draw_png(body: bytes, *, size: int) -> bytes:
    """Draw the text in `body`; refuses with the least size that it would need. Runs in the extraction process."""
    try:
        return png(body.decode(), size)
    except QrTooDense as exc:
        raise TaskRefused(exc.code, least=cast("int", exc.facts["least"])) from exc


def qr_code(text: str) -> segno.QRCode:
    """Error correction M: a quarter of it may be dirty, and it is still small."""
    if len(text) > MAX_TEXT:
        raise QrTooLong
    return segno.make_qr(text, error="m", boost_error=False)


def svg(text: str) -> bytes:
    out = io.BytesIO()
    qr_code(text).save(out, kind="svg", border=QUIET, light="#fff", xmldecl=False, svgclass=None, lineclass=None, omitsize=True)
    return out.getvalue()


def png(text: str, size: int) -> bytes:
    """Square, `size` pixels on each side: whole pixels per module, the rest is white."""
    rows = [bytes(row) for row in qr_code(text).matrix]
    scale = size // (len(rows) + 2 * QUIET)
    if not scale:
        raise QrTooDense(least=len(rows) + 2 * QUIET)
    before = (size - scale * len(rows)) // 2
    after = size - before - scale * len(rows)
    blank = b"\0" + b"\xff" * ((size + 7) // 8)
    lines = [blank] * before
    for row in rows:
        bits = "1" * before + "".join(("0" if dark else "1") * scale for dark in row) + "1" * after
        packed = int(bits.ljust(-(-size // 8) * 8, "1"), 2).to_bytes((size + 7) // 8, "big")
        lines += [b"\0" + packed] * scale
    lines += [blank] * after
    header = struct.pack(">IIBBBBB", size, size, 1, 0, 0, 0, 0)  # one bit per pixel, grey
    body = zlib.compress(b"".join(lines), 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
