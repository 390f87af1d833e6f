"""PNG files from rows of pixels. Pure."""

import struct
import zlib
from collections.abc import Iterable

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _INDEXED = 0, 3


def encode_png(
    width: int, height: int, rows: Iterable[bytes], *, depth: int, palette: bytes = b""
) -> bytes:
    """Return a PNG.

    Rows are packed pixels of `depth` bits: grey, or indexes in a palette of RGB triples.
    """
    header = struct.pack(">IIBBBBB", width, height, depth, _INDEXED if palette else _GREY, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
    colours = _chunk(b"PLTE", palette) if palette else b""
    return (
        _SIGNATURE
        + _chunk(b"IHDR", header)
        + colours
        + _chunk(b"IDAT", pixels)
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
