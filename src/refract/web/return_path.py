"""The page to return to after signing in.

Every short link is an open redirect, so no URL may say where sign-in leads to. The path is kept in
a signed, short-lived cookie instead, which only our own response can set.
"""

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from refract.core.runtime import Runtime
from refract.core.secrets import InvalidSeal
from refract.web.cookies import Cookie

COOKIE = Cookie("refract_return")
RETURN_PATH_SECONDS = 15 * 60
_PURPOSE = "return"
_MAX_LENGTH = 2048
_APP_PATHS = ("/app/", "/api/", "/auth/")
_ONWARD_PATHS = ("/auth/follow",)
"""Pages of the app that lead to another site, like short links."""


def remember_path(response: Response, rt: Runtime, path: str) -> None:
    """Remember a path with its query for after the sign-in, unless it is too long."""
    if len(path) > _MAX_LENGTH or not _own(path):
        return
    until = rt.clock.now() + timedelta(seconds=RETURN_PATH_SECONDS)
    sealed = rt.secret.seal(_PURPOSE, path.encode(), until=until)
    COOKIE.set(response, rt, sealed, max_age=RETURN_PATH_SECONDS)


def redirect_to_sign_in(rt: Runtime, path: str) -> Response:
    """Redirect to the sign-in page, and back to a path afterwards."""
    response = RedirectResponse("/auth/sign-in", 303, {"Cache-Control": "no-store"})
    remember_path(response, rt, path)
    return response


def get_return_path(request: Request, rt: Runtime) -> str | None:
    """Return the remembered path; None without one, or if it is forged or expired."""
    sealed = COOKIE.read(request, rt) or ""
    try:
        path = rt.secret.unseal(_PURPOSE, sealed, now=rt.clock.now()).decode("utf-8", "replace")
    except InvalidSeal:
        return None
    return path if _own(path) else None


def clear_path(request: Request, response: Response, rt: Runtime) -> None:
    if COOKIE.read(request, rt) is not None:
        COOKIE.delete(response, rt)


def _own(path: str) -> bool:
    """Return a path on this host: visible ASCII that starts with one slash."""
    return (
        path.startswith("/")
        and not path.startswith(("//", "/\\"))
        and path.isascii()
        and path.isprintable()
        and " " not in path
    )


def strip_query(path: str) -> str:
    return path.partition("?")[0].partition("#")[0]


def is_app_page(path: str) -> bool:
    """Return whether a path is a page of the app, not one that redirects like a short link."""
    bare = strip_query(path)
    return (bare.startswith(_APP_PATHS) or bare == "/") and bare not in _ONWARD_PATHS


def get_referring_path(request: Request, rt: Runtime, otherwise: str) -> str:
    """Return the page that a form was sent from, by Referer: the home page or one below /app."""
    came_from = request.headers.get("referer", "")
    path = came_from.removeprefix(rt.settings.public_url)
    return (
        path
        if path != came_from
        and (path == "/" or path.startswith("/app/"))
        and _own(path)
        and len(path) <= _MAX_LENGTH
        else otherwise
    )
