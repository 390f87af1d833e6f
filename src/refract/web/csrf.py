"""Proof that a request which carries our cookie also comes from our pages."""

import hmac
import secrets
from urllib.parse import urlsplit

from starlette.requests import Request

from refract.core.runtime import Runtime
from refract.core.secrets import decode_base64url, encode_base64url

HEADER = "x-csrf-token"
FIELD = "csrf"
_SIZE = 16
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def make_token(rt: Runtime, cookie: str) -> str:
    """The token that pages carry; it belongs to one cookie.

    It is written anew for every page under a random mask: pages are compressed, and how well what repeats in them can be compressed
    must tell nobody who watches the line anything about it.
    """
    mask = secrets.token_bytes(_SIZE)
    return encode_base64url(mask + _masked(_signature(rt, cookie), mask))


def _signature(rt: Runtime, cookie: str) -> bytes:
    return rt.secret.sign("csrf", cookie.encode(), size=_SIZE)


def _masked(text: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(text, mask, strict=True))


def own_origin(rt: Runtime, request: Request) -> bool:
    """Whether the browser names our public address as the page's origin. No header proves nothing."""
    origin = request.headers.get("origin")
    if not origin or origin == "null":
        return False
    theirs, ours = urlsplit(origin.lower()), urlsplit(rt.settings.public_url)
    return (theirs.scheme, theirs.netloc) == (ours.scheme, ours.netloc)


def own_token(rt: Runtime, cookie: str | None, given: str | None) -> bool:
    """Whether a token was written by us for this cookie."""
    if not cookie or not given or len(given) > 4 * _SIZE:
        return False
    raw = decode_base64url(given)
    return (
        raw is not None
        and len(raw) == 2 * _SIZE
        and hmac.compare_digest(_masked(raw[_SIZE:], raw[:_SIZE]), _signature(rt, cookie))
    )


async def is_valid(rt: Runtime, request: Request, cookie: str | None) -> bool:
    """Return whether the request has an Origin of ours, or the page's token in a header or a form field.

    Bodies of the API are JSON or files, so only its headers are looked at.
    """
    if own_origin(rt, request) or own_token(rt, cookie, request.headers.get(HEADER)):
        return True
    if request.scope["path"].startswith("/api/"):
        return False
    kind = request.headers.get("content-type", "")
    if not kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        return False
    field = (await request.form()).get(FIELD)
    return own_token(rt, cookie, field if isinstance(field, str) else None)
