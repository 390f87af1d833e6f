"""A body as it grows: decoded piece by piece, never beyond what was allowed."""

import zlib

from refract.core.net.errors import BadAnswer, TooLarge, Unreachable
from refract.core.net.limits import Limits


class Body:
    """Feed it until it is `full`, then `finish`.

    `enough`: so many bytes suffice, the rest is left unread and the body is `truncated`. Without it, what is over the limit is an error.
    """

    def __init__(self, encoding: str, limits: Limits, enough: int | None) -> None:
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise BadAnswer(f"encoded as {encoding[:80]}, which was not asked for")
        self._gzip = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
        self._limits = limits
        self._enough = enough
        self._most = limits.decoded if enough is None else min(enough, limits.decoded)
        self._wire = 0
        self._bytes = bytearray()
        self.truncated = False

    @property
    def full(self) -> bool:
        return self.truncated or (self._gzip is not None and self._gzip.eof)

    def feed(self, piece: bytes) -> None:
        self._wire += len(piece)
        plausible = max(self._limits.ratio_from, self._limits.ratio * self._wire)
        room = min(self._most, plausible) + 1 - len(self._bytes)  # one more than allowed, to notice that there is more
        self._bytes += piece[:room] if self._gzip is None else self._inflate(self._gzip, piece, room)
        size = len(self._bytes)
        if size > plausible:
            raise TooLarge(f"{self._wire} bytes became {size}")
        if size > self._most:
            if self._enough is None:
                raise TooLarge(f"more than {self._most} bytes once decoded")
            del self._bytes[self._most :]
            self.truncated = True

    def finish(self) -> bytes:
        """The whole, once the server has said that it is one."""
        if self._gzip is not None and self._wire and not self.full:
            raise Unreachable("the compressed body ended too early")
        return bytes(self._bytes)

    @staticmethod
    def _inflate(gzip: "zlib._Decompress", piece: bytes, room: int) -> bytes:
        try:
            return gzip.decompress(piece, room)
        except zlib.error as wrong:
            raise BadAnswer(f"broken gzip: {wrong}") from wrong
