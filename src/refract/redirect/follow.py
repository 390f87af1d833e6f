"""Restricted links of other domains, decided where people are signed in: the default domain."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from refract.core.errors import RefractError
from refract.names.grammar import build_short_url
from refract.redirect.asgi import (
    FOLLOW_PARAMETER,
    FOLLOW_PATH,
    RedirectApp,
    RedirectRequest,
    build_follow_path,
)
from refract.redirect.resolver import MissingOutcome
from refract.web.dependencies import Rt, page_router
from refract.web.hosts import move_to_domain
from refract.web.problems import PageNotFound

router = page_router()
MAX_TARGET_LENGTH = 20_000


class FollowedRequest(RedirectRequest):
    """A request for a path of another domain, by someone who may be signed in here."""

    async def build_followed(self) -> ASGIApp:
        """Return the response for a restricted link; send all others back to their domain.

        The page of a password is there, too.

        So nothing is decided here but what needs to be, and only names of links lead anywhere.
        """
        try:
            outcome = await self._resolve()
            if isinstance(outcome, MissingOutcome) or (
                outcome.found.restricted and not outcome.found.asks_password
            ):
                return await self._render_outcome(outcome)
        except RefractError as exc:
            return await self._render_error(exc)
        root = build_short_url(self._rt.settings.public_url, f"{self._host}/")
        url = root.removesuffix("/") + self._path_and_query
        return RedirectResponse(url, 302, {"Cache-Control": "no-store"})

    def _redirect_to_sign_in(self) -> Response:
        return self._remember_and_sign_in(build_follow_path(self._host, self._path_and_query))

    def _build_own_url(self, path: str) -> str:
        return build_follow_path(self._host, path)


class _WrappedResponse(Response):
    """A response that is an ASGI application, for an endpoint."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


@router.get(FOLLOW_PATH)
async def follow_link(
    request: Request,
    rt: Rt,  # noqa: ARG001 - its errors are those of the database
    link: Annotated[str, Query(alias=FOLLOW_PARAMETER, max_length=MAX_TARGET_LENGTH)] = "",
) -> Response:
    """Follow a restricted link of another domain: `sho.rt/name?query`."""
    host, slash, rest = link.partition("/")
    app: RedirectApp | None = getattr(request.app.state, "redirects", None)
    if app is None or not slash or app.hooks.find_domain(host) is None:
        raise PageNotFound
    path, _, query = rest.partition("?")
    scope = move_to_domain(request.scope, host, f"/{path}", query)
    return _WrappedResponse(await FollowedRequest(app, scope).build_followed())
