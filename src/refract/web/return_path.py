"""Where somebody wanted to go before they were asked to sign in.

Every name of ours is an open redirect, so no address that anybody can write may say where sign-in leads. The wish is kept in a
signed, short-lived cookie instead, which only our own answer can set.
"""

import base64
import binascii

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from refract.core.runtime import Runtime

COOKIE = "refract_return"
RETURN_PATH_MINUTES = 15
_LONGEST = 2048
_SIGNATURE = 16
_MOMENT = 8


def remember_path(response: Response, rt: Runtime, path: str) -> None:
    """Keep a path of ours (with its query) for after the sign-in; what is too long for a cookie is not kept."""
    if len(path) > _LONGEST or not _own(path):
        return
    until = int(rt.clock.now().timestamp()) + RETURN_PATH_MINUTES * 60
    message = until.to_bytes(_MOMENT, "big") + path.encode()
    value = (
        base64.urlsafe_b64encode(rt.secret.sign("return", message, size=_SIGNATURE) + message)
        .rstrip(b"=")
        .decode()
    )
    response.set_cookie(
        _name(rt),
        value,
        max_age=RETURN_PATH_MINUTES * 60,
        path="/",
        secure=rt.settings.https,
        httponly=True,
        samesite="lax",
    )


def redirect_to_sign_in(rt: Runtime, path: str) -> Response:
    """Send a browser to sign in, and back to a path of ours afterwards."""
    response = RedirectResponse("/auth/sign-in", 303, {"Cache-Control": "no-store"})
    remember_path(response, rt, path)
    return response


def get_return_path(request: Request, rt: Runtime) -> str | None:
    """The path that was kept; None when there is none, when it is not ours or when it is too old."""
    value = request.cookies.get(_name(rt), "")
    try:
        raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except (binascii.Error, ValueError):
        return None
    signature, message = raw[:_SIGNATURE], raw[_SIGNATURE:]
    if len(signature) < _SIGNATURE or not rt.secret.verify("return", message, signature):
        return None
    if int.from_bytes(message[:_MOMENT], "big") <= rt.clock.now().timestamp():
        return None
    path = message[_MOMENT:].decode("utf-8", "replace")
    return path if _own(path) else None


def clear_path(request: Request, response: Response, rt: Runtime) -> None:
    if _name(rt) in request.cookies:
        response.delete_cookie(
            _name(rt), path="/", secure=rt.settings.https, httponly=True, samesite="lax"
        )


def _name(rt: Runtime) -> str:
    return f"__Host-{COOKIE}" if rt.settings.https else COOKIE


def _own(path: str) -> bool:
    """A path on this host and nothing else: visible ASCII, one slash at the beginning."""
    return (
        path.startswith("/")
        and not path.startswith(("//", "/\\"))
        and path.isascii()
        and path.isprintable()
        and " " not in path
    )


def get_referring_path(request: Request, rt: Runtime, otherwise: str) -> str:
    """The page of ours that a form was sent from, as the browser says: the start page or one below /app."""
    came_from = request.headers.get("referer", "")
    path = came_from.removeprefix(rt.settings.public_url)
    return (
        path
        if path != came_from
        and (path == "/" or path.startswith("/app/"))
        and _own(path)
        and len(path) <= _LONGEST
        else otherwise
    )
