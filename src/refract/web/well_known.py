"""Documents under `/.well-known/`: security.txt and Global Privacy Control."""

from datetime import timedelta
from typing import Final

from fastapi import APIRouter, Response

from refract.core.clock import format_utc
from refract.web.dependencies import Rt
from refract.web.problems import PageNotFound

router = APIRouter(prefix="/.well-known", include_in_schema=False)
SECURITY_TXT_LIFETIME: Final = timedelta(days=90)
"""Validity of security.txt (RFC 9116 requires an end). It is generated for each request."""
GPC_SINCE: Final = "2026-11-16"
_CACHE_HEADERS: Final = {"Cache-Control": "public, max-age=86400"}


@router.get("/security.txt")
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


@router.get("/gpc.json")
async def gpc() -> Response:
    """Declare support of Global Privacy Control.

    Clicks of such visitors are counted without agent, referrer, campaign or network.
    """
    return Response(
        f'{{"gpc": true, "lastUpdate": "{GPC_SINCE}"}}\n',
        media_type="application/json",
        headers=_CACHE_HEADERS,
    )
