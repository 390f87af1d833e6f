"""linkding's REST API at `/api/bookmarks`, `/api/tags`, `/api/user` and `/api/bundles`."""

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope as AsgiScope

from refract.compat.dialect import Dialect, Operation
from refract.compat.linkding import bookmarks, tags
from refract.compat.linkding.errors import (
    BundlesNotSupported,
    LinkdingObjectNotFound,
    UploadsDisabled,
)
from refract.compat.linkding.shapes import LINKDING_VERSION, PROFILE
from refract.compat.pagination import make_json_response
from refract.compat.request import DialectRequest
from refract.core.errors import Conflict, Invalid, RefractError, Unauthenticated
from refract.identity.errors import SignInRequired
from refract.identity.models import Scope
from refract.library.errors import TooManyItemTags
from refract.tags.errors import InvalidTag
from refract.web.problems import PageNotFound

_READ, _WRITE = Scope.READ, Scope.WRITE
_BOOKMARK = "/bookmarks/{number:int}"


async def read_health(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    return make_json_response({"version": LINKDING_VERSION, "status": "healthy"})


async def read_profile(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    return make_json_response(PROFILE)


async def list_bundles(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    return make_json_response(bookmarks.EMPTY_PAGE)


async def refuse_bundle_change(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise BundlesNotSupported


async def refuse_upload(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise UploadsDisabled


async def find_nothing(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    raise LinkdingObjectNotFound


class LinkdingDialect(Dialect):
    """linkding's REST API."""

    name = "linkding"
    roots = tuple((f"/api/{name}", "/api") for name in ("bookmarks", "tags", "user", "bundles"))
    is_personal = True

    def find_path(self, scope: AsgiScope, headers: Headers) -> str | None:
        """Return `/health` too if a client of linkding asks for it, with its key."""
        scheme = headers.get("authorization", "").partition(" ")[0].lower()
        if scope["path"].rstrip("/") == "/health" and scheme == "token":
            return "/health"
        return super().find_path(scope, headers)

    def list_operations(self) -> Sequence[Operation]:
        asset = _BOOKMARK + "/assets/{asset:int}"
        return (
            Operation("GET", "/health", read_health, None),
            Operation("GET", "/bookmarks", bookmarks.list_bookmarks, _READ),
            Operation("POST", "/bookmarks", bookmarks.create_bookmark, _WRITE),
            Operation("GET", "/bookmarks/archived", bookmarks.list_archived_bookmarks, _READ),
            Operation("GET", "/bookmarks/shared", bookmarks.list_shared_bookmarks, _READ),
            Operation("GET", "/bookmarks/check", bookmarks.check_bookmark, _READ),
            Operation("POST", "/bookmarks/singlefile", refuse_upload, _WRITE),
            Operation("GET", _BOOKMARK, bookmarks.read_bookmark, _READ),
            Operation("PUT", _BOOKMARK, bookmarks.change_bookmark, _WRITE),
            Operation("PATCH", _BOOKMARK, bookmarks.change_bookmark, _WRITE),
            Operation("DELETE", _BOOKMARK, bookmarks.delete_bookmark, _WRITE),
            Operation("POST", f"{_BOOKMARK}/archive", bookmarks.archive_bookmark, _WRITE),
            Operation("POST", f"{_BOOKMARK}/unarchive", bookmarks.unarchive_bookmark, _WRITE),
            Operation("GET", f"{_BOOKMARK}/assets", bookmarks.list_assets, _READ),
            Operation("POST", f"{_BOOKMARK}/assets/upload", refuse_upload, _WRITE),
            Operation("GET", asset, find_nothing, _READ),
            Operation("DELETE", asset, find_nothing, _WRITE),
            Operation("GET", f"{asset}/download", find_nothing, _READ),
            Operation("GET", "/tags", tags.list_tags, _READ),
            Operation("POST", "/tags", tags.create_tag, _WRITE),
            Operation("GET", "/tags/{number:int}", tags.read_tag, _READ),
            Operation("DELETE", "/tags/{number:int}", tags.delete_tag, _WRITE),
            Operation("GET", "/user/profile", read_profile, _READ),
            Operation("GET", "/bundles", list_bundles, _READ),
            Operation("POST", "/bundles", refuse_bundle_change, _WRITE),
            Operation("GET", "/bundles/{number:int}", find_nothing, _READ),
            Operation("PUT", "/bundles/{number:int}", refuse_bundle_change, _WRITE),
            Operation("PATCH", "/bundles/{number:int}", refuse_bundle_change, _WRITE),
            Operation("DELETE", "/bundles/{number:int}", refuse_bundle_change, _WRITE),
        )

    def get_key(self, request: DialectRequest) -> str | None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        return key.strip() if scheme.lower() in ("token", "bearer") else None

    def make_error_response(
        self,
        request: DialectRequest,  # noqa: ARG002 - the same for all paths
        error: RefractError,
    ) -> Response:
        headers = {}
        status, body = _describe(error)
        if status == 401:
            headers["WWW-Authenticate"] = "Token"
        response = make_json_response(body, status)
        response.headers.update(headers)
        return response


def _describe(error: RefractError) -> tuple[int, dict[str, Any]]:
    match error:
        case Unauthenticated():
            missing = "Authentication credentials were not provided."
            return 401, {
                "detail": missing if isinstance(error, SignInRequired) else "Invalid token."
            }
        case UploadsDisabled():
            return 403, {"error": error.message}
        case Invalid() | Conflict():
            return 400, _list_fields(error)
        case PageNotFound():
            return 404, {"detail": "Not found."}
    return error.status, {"detail": error.message}


def _list_fields(error: RefractError) -> dict[str, list[str]]:
    if isinstance(error, InvalidTag | TooManyItemTags):
        return {"tag_names": [error.message]}
    found: dict[str, list[str]] = {}
    for field in error.errors:
        found.setdefault(field.field.partition(".")[0], []).append(field.message)
    return found or {"non_field_errors": [error.message]}
