"""The ASGI application of all enabled dialects, before pages and API."""

from collections.abc import Sequence
from functools import partial

import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from refract.compat.dialect import Dialect
from refract.compat.karakeep.api import KarakeepDialect
from refract.compat.kutt.api import KuttDialect
from refract.compat.linkding.api import LinkdingDialect
from refract.compat.request import DialectRequest
from refract.compat.shlink.api import ShlinkDialect
from refract.compat.yourls.api import YourlsDialect
from refract.core.errors import RefractError
from refract.core.settings.model import Settings
from refract.web.hosts import get_domain
from refract.web.i18n import ENGLISH, use_locale
from refract.web.middleware import HeadOnlySend
from refract.web.problems import InternalError, build_problem_headers
from refract.web.routing import RouteBody, retry_when_busy

DIALECTS: Sequence[type[Dialect]] = (
    ShlinkDialect,
    LinkdingDialect,
    KuttDialect,
    YourlsDialect,
    KarakeepDialect,
)
_PREFLIGHT_SECONDS = 3600


def list_dialects(settings: Settings) -> list[Dialect]:
    """Return the dialects that `REFRACT_COMPAT` names."""
    return [dialect() for dialect in DIALECTS if dialect.name in settings.compat]


class DialectDispatcher:
    """Answers the paths of enabled dialects on the default domain, and passes all else on.

    A key is the only proof here: cookies are not read, so any origin may ask.
    """

    def __init__(self, api: Starlette, dialects: Sequence[Dialect], others: ASGIApp) -> None:
        self._api = api
        self._dialects = dialects
        self._others = others
        self._log = structlog.get_logger("refract.compat")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not get_domain(scope):
            headers = Headers(scope=scope)
            for dialect in self._dialects:
                if (path := dialect.find_path(scope, headers)) is not None:
                    await self._answer(dialect, path, scope, receive, send)
                    return
        await self._others(scope, receive, send)

    async def _answer(
        self, dialect: Dialect, path: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        method = scope["method"]
        if method == "HEAD":
            scope, send = {**scope, "method": "GET"}, HeadOnlySend(send)
        scope["app"] = self._api
        body = RouteBody(Request(scope, receive), large=False)
        request = DialectRequest(scope, body)
        request.path = path
        try:
            if method == "OPTIONS":
                response = _make_preflight_response(dialect, request)
            else:
                with use_locale(ENGLISH):
                    response = await self._respond(dialect, request, body)
            response.headers["Access-Control-Allow-Origin"] = "*"
            await response(scope, receive, send)
        finally:
            await request.close()

    async def _respond(
        self, dialect: Dialect, request: DialectRequest, body: RouteBody
    ) -> Response:
        try:
            body.check_length()
            return await retry_when_busy(partial(dialect.respond, request))
        except ClientDisconnect:
            raise
        except RefractError as exc:
            error = exc
        except Exception:  # noqa: BLE001 - logged, without the query, which may hold a key
            self._log.exception("request_failed", method=request.method, path=request.url.path)
            error = InternalError()
        response = dialect.make_error_response(request, error)
        response.headers.update(build_problem_headers(error))
        return response


def _make_preflight_response(dialect: Dialect, request: DialectRequest) -> Response:
    """Allow a browser to send what it announces. No key is needed and no limit is charged."""
    methods = dialect.list_methods(request.path) or ["GET"]
    asked = request.headers.get("access-control-request-headers", "")
    headers = {
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
        "Allow": ", ".join([*methods, "OPTIONS"]),
    }
    if asked:
        headers["Access-Control-Allow-Headers"] = asked
    return Response(status_code=204, headers=headers)
