"""Routes of static files, robots.txt and documents under `/.well-known/`.

Browsers cache static files forever, since their URLs contain a digest.
"""

import gzip
from datetime import timedelta
from functools import lru_cache
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response

from refract.core.clock import format_utc
from refract.web.dependencies import Rt
from refract.web.hosts import get_domain
from refract.web.problems import PageNotFound
from refract.web.static_files import read_static, static_digest, static_files

router = APIRouter(include_in_schema=False)
_IMMUTABLE = "public, max-age=31536000, immutable"
_TYPES = {
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
    ".ico": "image/x-icon",
}
_COMPRESSIBLE = ("text/", "image/svg", "application/manifest", "application/json")


@lru_cache(maxsize=256)
def _load_asset(name: str) -> tuple[bytes, bytes | None, str] | None:
    """Return a file's content, its compressed form if that is smaller, and its type."""
    if name not in static_files():
        return None
    body = read_static(name)
    kind = _TYPES.get(Path(name).suffix) or guess_type(name)[0] or "application/octet-stream"
    compressed = gzip.compress(body, 9, mtime=0) if kind.startswith(_COMPRESSIBLE) else None
    return body, compressed, kind


@router.get("/static/{digest}/{name:path}")
async def asset(digest: str, name: str, request: Request) -> Response:
    """Serve a static file.

    An unknown digest comes from a page of another version: it gets the current file, uncached.
    """
    found = _load_asset(name)
    if found is None:
        raise PageNotFound
    body, compressed, kind = found
    headers = {
        "Cache-Control": _IMMUTABLE if digest == static_digest() else "no-cache",
        "Vary": "Accept-Encoding",
    }
    if compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(compressed, headers=headers | {"Content-Encoding": "gzip"}, media_type=kind)
    return Response(body, headers=headers, media_type=kind)


@router.get("/favicon.ico")
async def favicon() -> Response:
    found = _load_asset("favicon.ico")
    if found is None:
        raise PageNotFound
    return Response(
        found[0], headers={"Cache-Control": "public, max-age=86400"}, media_type=found[2]
    )


@router.get("/robots.txt")
async def robots(request: Request) -> Response:
    """Disallow the app for crawlers. Published pages are found by their own URLs.

    On other domains than the default one there is no app, and its paths are names.
    """
    paths = ("",) if get_domain(request.scope) else (" /app", " /api", " /auth")
    return Response(
        "User-agent: *\n" + "".join(f"Disallow:{path}\n" for path in paths),
        media_type="text/plain",
        headers={"Cache-Control": "public, max-age=3600"},
    )


# Documents under `/.well-known/`: security.txt and Global Privacy Control.

well_known_router = APIRouter(prefix="/.well-known", include_in_schema=False)
SECURITY_TXT_LIFETIME: Final = timedelta(days=90)
"""Validity of security.txt (RFC 9116 requires an end). It is generated for each request."""
GPC_SINCE: Final = "2026-11-16"
_CACHE_HEADERS: Final = {"Cache-Control": "public, max-age=86400"}


@well_known_router.get("/security.txt")
async def security_txt(rt: Rt) -> Response:
    """Return the security contact (RFC 9116). 404 unless the operator sets one."""
    settings = rt.settings
    if settings.security_contact is None:
        raise PageNotFound
    until = (rt.clock.now() + SECURITY_TXT_LIFETIME).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    lines = [
        f"Contact: {settings.security_contact}",
        f"Expires: {format_utc(until)}",
        "Preferred-Languages: en",
        f"Canonical: {settings.public_url}/.well-known/security.txt",
        *([f"Policy: {settings.security_policy}"] if settings.security_policy else []),
    ]
    return Response("\n".join(lines) + "\n", media_type="text/plain", headers=_CACHE_HEADERS)


@well_known_router.get("/gpc.json")
async def gpc() -> Response:
    """Declare support of Global Privacy Control.

    Clicks of such visitors are counted without agent, referrer, campaign or network.
    """
    return Response(
        f'{{"gpc": true, "lastUpdate": "{GPC_SINCE}"}}\n',
        media_type="application/json",
        headers=_CACHE_HEADERS,
    )
