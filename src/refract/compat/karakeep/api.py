"""Karakeep's REST API at `/karakeep/api/v1`: its own paths would be those of this API."""

from collections.abc import Sequence
from http import HTTPStatus

from starlette.responses import PlainTextResponse, Response

from refract.compat.dialect import Dialect, Operation
from refract.compat.karakeep import bookmarks, tags
from refract.compat.karakeep.errors import (
    AssetsNotSupported,
    BookmarkListsNotSupported,
    HighlightsNotSupported,
    KarakeepObjectNotFound,
)
from refract.compat.karakeep.shapes import KARAKEEP_VERSION, build_stats, build_user
from refract.compat.pagination import make_json_response
from refract.compat.request import DialectRequest
from refract.core.errors import Invalid, RefractError, Unauthenticated
from refract.identity.models import Scope
from refract.library.queries.totals import load_library_totals

_READ, _WRITE = Scope.READ, Scope.WRITE
_CODES = {
    400: "BAD_REQUEST",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_SUPPORTED",
    409: "CONFLICT",
    412: "PRECONDITION_FAILED",
    413: "PAYLOAD_TOO_LARGE",
    429: "TOO_MANY_REQUESTS",
}


async def read_health(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    return make_json_response({"status": "ok", "message": "Web app is working"})


async def read_version(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    return make_json_response({"version": KARAKEEP_VERSION})


async def read_user(request: DialectRequest) -> Response:
    return make_json_response(build_user(request.caller.user))


async def read_stats(request: DialectRequest) -> Response:
    rt = request.rt
    async with rt.db.read() as session:
        totals = await load_library_totals(session, request.caller.user.id, rt.clock.now())
    return make_json_response(build_stats(totals))


async def list_no_lists(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    return make_json_response({"lists": []})


async def list_no_highlights(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    return make_json_response({"highlights": [], "nextCursor": None})


async def refuse_list(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise BookmarkListsNotSupported


async def refuse_highlight(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise HighlightsNotSupported


async def refuse_asset(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise AssetsNotSupported


async def find_nothing(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise KarakeepObjectNotFound


class KarakeepDialect(Dialect):
    """Karakeep's REST API."""

    name = "karakeep"
    roots = (("/karakeep/api", "/karakeep/api"),)
    is_personal = True

    def list_operations(self) -> Sequence[Operation]:
        return (
            Operation("GET", "/health", read_health, None),
            Operation("GET", "/version", read_version, None),
            Operation("GET", "/v1/users/me", read_user, _READ),
            Operation("GET", "/v1/users/me/stats", read_stats, _READ),
            *_list_bookmark_operations(),
            *_list_tag_operations(),
            *_list_refused_operations(),
        )

    def get_key(self, request: DialectRequest) -> str | None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        return key.strip() if scheme.lower() == "bearer" else None

    def make_error_response(
        self,
        request: DialectRequest,  # noqa: ARG002 - the same for all paths
        error: RefractError,
    ) -> Response:
        if isinstance(error, Unauthenticated):
            return PlainTextResponse("Unauthorized", 401, {"WWW-Authenticate": "Bearer"})
        status = 400 if isinstance(error, Invalid) else error.status
        details = "; ".join(f"{field.field}: {field.message}" for field in error.errors)
        code = _CODES.get(status) or HTTPStatus(status).name
        return make_json_response({"code": code, "message": details or error.message}, status)


def _list_bookmark_operations() -> Sequence[Operation]:
    one = "/v1/bookmarks/{bookmark}"
    return (
        Operation("GET", "/v1/bookmarks", bookmarks.list_bookmarks, _READ),
        Operation("POST", "/v1/bookmarks", bookmarks.create_bookmark, _WRITE),
        Operation("GET", "/v1/bookmarks/search", bookmarks.search_bookmarks, _READ),
        Operation("GET", "/v1/bookmarks/check-url", bookmarks.check_url, _READ),
        Operation("GET", one, bookmarks.read_bookmark, _READ),
        Operation("PATCH", one, bookmarks.change_bookmark, _WRITE),
        Operation("DELETE", one, bookmarks.delete_bookmark, _WRITE),
        Operation("POST", f"{one}/tags", tags.attach_tags, _WRITE),
        Operation("DELETE", f"{one}/tags", tags.detach_tags, _WRITE),
        Operation("GET", f"{one}/lists", bookmarks.list_bookmark_lists, _READ),
        Operation("GET", f"{one}/highlights", bookmarks.list_bookmark_highlights, _READ),
        Operation("POST", f"{one}/assets", refuse_asset, _WRITE),
    )


def _list_tag_operations() -> Sequence[Operation]:
    return (
        Operation("GET", "/v1/tags", tags.list_tags, _READ),
        Operation("POST", "/v1/tags", tags.create_tag, _WRITE),
        Operation("GET", "/v1/tags/{tag}", tags.read_tag, _READ),
        Operation("PATCH", "/v1/tags/{tag}", tags.change_tag, _WRITE),
        Operation("DELETE", "/v1/tags/{tag}", tags.delete_tag, _WRITE),
        Operation("GET", "/v1/tags/{tag}/bookmarks", tags.list_tagged_bookmarks, _READ),
    )


def _list_refused_operations() -> Sequence[Operation]:
    """Return the operations on what does not exist here."""
    one = "/v1/lists/{list}"
    return (
        Operation("GET", "/v1/lists", list_no_lists, _READ),
        Operation("POST", "/v1/lists", refuse_list, _WRITE),
        Operation("GET", one, find_nothing, _READ),
        Operation("PATCH", one, find_nothing, _WRITE),
        Operation("DELETE", one, find_nothing, _WRITE),
        Operation("GET", f"{one}/bookmarks", find_nothing, _READ),
        Operation("PUT", f"{one}/bookmarks/{{bookmark}}", find_nothing, _WRITE),
        Operation("DELETE", f"{one}/bookmarks/{{bookmark}}", find_nothing, _WRITE),
        Operation("GET", "/v1/highlights", list_no_highlights, _READ),
        Operation("POST", "/v1/highlights", refuse_highlight, _WRITE),
        Operation("GET", "/v1/highlights/{highlight}", find_nothing, _READ),
        Operation("PATCH", "/v1/highlights/{highlight}", find_nothing, _WRITE),
        Operation("DELETE", "/v1/highlights/{highlight}", find_nothing, _WRITE),
        Operation("POST", "/v1/assets", refuse_asset, _WRITE),
        Operation("GET", "/v1/assets/{asset}", find_nothing, _READ),
        Operation("GET", "/v1/backups", find_nothing, _READ),
        Operation("GET", "/v1/feeds", find_nothing, _READ),
    )
