"""Proof that a request which carries our cookie also comes from our pages."""

import base64
import hmac
from urllib.parse import urlsplit

from starlette.requests import Request

from refract.core.runtime import Runtime

HEADER = "x-csrf-token"
FIELD = "csrf"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def token_for(rt: Runtime, cookie: str) -> str:
    """The token that pages carry; it belongs to one cookie."""
    return base64.urlsafe_b64encode(rt.secret.sign("csrf", cookie.encode())).rstrip(b"=").decode()


def own_origin(rt: Runtime, request: Request) -> bool:
    """Whether the browser names our public address as the page's origin. No header proves nothing."""
    origin = request.headers.get("origin")
    if not origin or origin == "null":
        return False
    theirs, ours = urlsplit(origin.lower()), urlsplit(rt.settings.public_url)
    return (theirs.scheme, theirs.netloc) == (ours.scheme, ours.netloc)


def own_token(rt: Runtime, cookie: str | None, given: str | None) -> bool:
    return bool(cookie and given) and hmac.compare_digest(token_for(rt, cookie or "").encode(), (given or "").encode("utf-8", "replace"))


async def proven(rt: Runtime, request: Request, cookie: str | None) -> bool:
    """An origin of our own address, or the token from the page as a header or a form field."""
    if own_origin(rt, request) or own_token(rt, cookie, request.headers.get(HEADER)):
        return True
    kind = request.headers.get("content-type", "")
    if not kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        return False
    field = (await request.form()).get(FIELD)
    return own_token(rt, cookie, field if isinstance(field, str) else None)
