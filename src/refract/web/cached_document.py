"""Conditional responses: ETags of the API, and documents that are the same for every client."""

import gzip
import hashlib
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Self

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from refract.web.csrf import SAFE_METHODS

_PIECE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class CachedDocument:
    """The compressed bytes of a document."""

    compressed: bytes
    size: int
    """Of the document itself."""
    etag: str
    media_type: str

    @classmethod
    def from_bytes(cls, body: bytes, media_type: str) -> Self:
        """Compress and hash a body. Slow: call it in a thread."""
        return cls(
            gzip.compress(body, 9, mtime=0),
            len(body),
            f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"',
            media_type,
        )

    def to_response(self, request: Request) -> Response:
        """Return the form that the client accepts, or 304 if it has the document already."""
        headers = {"ETag": self.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if self.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                self.compressed,
                headers=headers | {"Content-Encoding": "gzip"},
                media_type=self.media_type,
            )
        headers["Content-Length"] = str(self.size)
        return StreamingResponse(self._decompress(), headers=headers, media_type=self.media_type)

    async def _decompress(self) -> AsyncIterator[bytes]:
        """Yield the document in pieces, between which other requests are answered."""
        unpacker = zlib.decompressobj(wbits=31)
        piece = unpacker.decompress(self.compressed, _PIECE_BYTES)
        while piece:
            yield piece
            piece = unpacker.decompress(unpacker.unconsumed_tail, _PIECE_BYTES)


def revalidate(request: Request, response: Response) -> Response:
    """Complete the ETag of a response, or return 304 if the client has this response already.

    An endpoint sets the version of a resource. Some fields, such as its clicks, change without a
    new version, so a digest of the body follows the version. `If-Match` compares the version only.
    """
    version = response.headers.get("etag")
    if version is None:
        return response
    digest = hashlib.blake2b(response.body, digest_size=6).hexdigest()
    etag = f'{version.removesuffix(chr(34))}-{digest}"'
    response.headers["ETag"] = etag
    known = request.headers.get("if-none-match", "")
    if request.method in SAFE_METHODS and (etag in known or known.strip() == "*"):
        return Response(status_code=304, headers={"ETag": etag})
    return response
