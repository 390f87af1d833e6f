"""CSRF protection: check that a request with our cookie comes from our pages."""

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
    """Return the token that a page carries, bound to a cookie.

    It is masked randomly for every page: pages are compressed, and the size of repeated content
    must not reveal the token to an observer (BREACH).
    """
    mask = secrets.token_bytes(_SIZE)
    return encode_base64url(mask + _masked(_signature(rt, cookie), mask))


def _signature(rt: Runtime, cookie: str) -> bytes:
    return rt.secret.sign("csrf", cookie.encode(), size=_SIZE)


def _masked(text: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(text, mask, strict=True))


def own_origin(rt: Runtime, request: Request) -> bool:
    """Return whether the Origin header is our public URL. A missing header is not."""
    origin = request.headers.get("origin")
    if not origin or origin == "null":
        return False
    theirs, ours = urlsplit(origin.lower()), urlsplit(rt.settings.public_url)
    return (theirs.scheme, theirs.netloc) == (ours.scheme, ours.netloc)


def own_token(rt: Runtime, cookie: str | None, given: str | None) -> bool:
    """Return whether a token was made by us for this cookie."""
    if not cookie or not given or len(given) > 4 * _SIZE:
        return False
    raw = decode_base64url(given)
    return (
        raw is not None
        and len(raw) == 2 * _SIZE
        and hmac.compare_digest(_masked(raw[_SIZE:], raw[:_SIZE]), _signature(rt, cookie))
    )


async def is_valid(rt: Runtime, request: Request, cookie: str | None) -> bool:
    """Return whether the request has our Origin, or the page's token in a header or form field.

    Bodies of the API are JSON or files, so only headers are read there.
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
