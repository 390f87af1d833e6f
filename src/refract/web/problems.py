"""Problem documents (RFC 9457), and errors of the HTTP layer."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from structlog.contextvars import get_contextvars

from refract.core.errors import (
    FieldError,
    Invalid,
    Limited,
    Malformed,
    NotFound,
    RefractError,
    Unavailable,
)
from refract.core.phrases import Phrase
from refract.core.schemas import describe_validation_error
from refract.web.i18n import LazyText, lazy_gettext

if TYPE_CHECKING:
    from fastapi.exceptions import (
        RequestValidationError,
    )  # every role imports this module

MEDIA_TYPE = "application/problem+json"
MAX_FIELD_ERRORS = 20


class MalformedUrl(Malformed):
    """The URL couldn't be read: {why}"""


class MalformedBody(Malformed):
    """The body couldn't be read as JSON: {why}"""


class ValidationFailed(Invalid):
    """Validation failed. See `errors` for {which}."""

    def __init__(self, *, errors: list[FieldError]) -> None:
        which = (
            Phrase("details")
            if len(errors) <= MAX_FIELD_ERRORS
            else Phrase("the first {limit} of {total}", limit=MAX_FIELD_ERRORS, total=len(errors))
        )
        super().__init__(errors=errors[:MAX_FIELD_ERRORS], which=which)


class PageNotFound(NotFound):
    """Page not found."""


class MethodNotAllowed(RefractError):
    """The method {method} isn't allowed here."""

    status = 405
    headers: dict[str, str]


class BodyTooLarge(RefractError):
    """The body is too large. The limit is {limit} bytes."""

    status = 413


class UnsupportedMediaType(RefractError):
    """Send the body as application/json."""

    status = 415


class ClientDisconnected(RefractError):
    """The client disconnected before its request was complete."""

    status = 499


class InternalError(RefractError):
    """Something went wrong on our side and nothing was changed.

    Include the request ID when you report it.
    """


class FieldProblem(BaseModel):
    """A field with an invalid value."""

    field: str = Field(examples=["destination"])
    message: str = Field(examples=["Only http:// and https:// URLs are supported, not ftp:."])


class Problem(BaseModel):
    """A problem document (RFC 9457). `code` is stable; messages may change."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Conflict"])
    status: int = Field(examples=[409])
    code: str = Field(examples=["SLUG_TAKEN"])
    detail: str = Field(examples=['The name "roadmap" is already in use.'])
    request_id: str | None = Field(
        description="Also in the header `X-Request-Id`, and in the log.",
        examples=["0f8b6c1d2e3f4a5b"],
    )
    errors: list[FieldProblem] = Field(default_factory=list)


STATUS_TITLES = {
    400: "Bad request",
    401: "Sign-in required",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    412: "Precondition failed",
    413: "Too large",
    414: "URL too long",
    415: "Unsupported media type",
    421: "Misdirected request",
    422: "Invalid request",
    429: "Too many requests",
    499: "Client disconnected",
    500: "Internal error",
    501: "Not implemented",
    503: "Unavailable",
}


def build_problem(error: RefractError) -> dict[str, Any]:
    """Return the members of the problem document, with the extra ones of the error."""
    return {
        "type": "about:blank",
        "title": STATUS_TITLES.get(error.status, "Problem"),
        "status": error.status,
        "code": error.code,
        "detail": error.message,
        "request_id": get_contextvars().get("request_id"),
        "errors": [
            {"field": field_error.field, "message": field_error.message}
            for field_error in error.errors[:MAX_FIELD_ERRORS]
        ],
        **getattr(error, "extra", {}),
    }


_PAGE_HEADINGS = {
    401: lazy_gettext("Sign in to continue"),
    403: lazy_gettext("You don’t have access"),
    404: lazy_gettext("Page not found"),
    414: lazy_gettext("URL too long"),
    421: lazy_gettext("Wrong host"),
    429: lazy_gettext("Too many requests"),
    503: lazy_gettext("Back in a moment"),
}
"""Headings of error pages, by status."""


def build_error_context(
    error: RefractError,
    request_id: str | None,
    *,
    heading: LazyText | None = None,
    detail: LazyText | None = None,
) -> dict[str, Any]:
    """Return the context of `error.html`, status and title included.

    `heading` and `detail` replace the heading of the status and the message of the error.
    """
    usual = _PAGE_HEADINGS.get(error.status, lazy_gettext("Something went wrong"))
    return {
        "status": error.status,
        "page_title": str(error.status),
        "title": heading or usual,
        "detail": detail or error.message,
        "request_id": request_id,
        # Most messages of limits contain the time to wait.
        "retry_after": (
            None if "{wait}" in error.template else getattr(error, "retry_after", None)
        ),
    }


def build_problem_headers(error: RefractError) -> dict[str, str]:
    headers: dict[str, str] = dict(getattr(error, "headers", {}))
    if isinstance(error, Limited):
        headers |= {
            "Retry-After": str(error.retry_after),
            "RateLimit-Limit": str(error.limit),
            "RateLimit-Remaining": "0",
            "RateLimit-Reset": str(error.retry_after),
        }
    elif isinstance(error, Unavailable):
        headers["Retry-After"] = str(error.retry_after)
    elif error.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="refract"'
    return headers


def make_problem_response(error: RefractError) -> Response:
    body = json.dumps(build_problem(error), ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, error.status, build_problem_headers(error), MEDIA_TYPE)


def is_html_accepted(headers: Mapping[str, str]) -> bool:
    """Return whether the client accepts HTML. Browsers do, programs don't."""
    return "text/html" in headers.get("accept", "")


def problems(*errors: type[RefractError]) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of errors, with their codes and messages."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for error in errors:
        content = {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}
        entry = by_status.setdefault(
            error.status,
            {"description": STATUS_TITLES[error.status], "content": {MEDIA_TYPE: content}},
        )
        example = {
            "type": "about:blank",
            "title": STATUS_TITLES[error.status],
            "status": error.status,
            "code": error.code,
            "detail": error.template,
            "request_id": "0f8b6c1d2e3f4a5b",
            "errors": [],
        }
        entry["content"][MEDIA_TYPE]["examples"][error.code] = {
            "summary": error.template,
            "value": example,
        }
    return by_status


def translate_validation_error(error: "RequestValidationError") -> RefractError:
    """Return our error for FastAPI's: 400 for malformed JSON, 422 for invalid values."""
    found = error.errors()
    for detail in found:
        if detail["type"] == "json_invalid":
            reason = detail.get("ctx", {}).get("error", "it isn't JSON")
            return MalformedBody(why=f"{reason}.")
    return ValidationFailed(errors=list_field_errors(found))


def list_field_errors(found: Sequence[Any]) -> list[FieldError]:
    """Return our field errors for pydantic's.

    A value that may also be null has a second error, that it isn't null, which is left out.
    """
    return [
        FieldError(_format_location(detail["loc"]), describe_validation_error(detail))
        for detail in found
        if detail["type"] != "none_required"
    ]


def _format_location(location: tuple[Any, ...]) -> str:
    parts = [
        str(part) for part in location if part not in ("body", "query", "path", "header", "cookie")
    ]
    return ".".join(parts) or str(location[0] if location else "body")


def translate_http_exception(error: HTTPException, request: Request) -> RefractError:
    """Return our error for the framework's, or the one of ours that caused it."""
    if isinstance(error.__cause__, RefractError):
        return error.__cause__
    if isinstance(error.__cause__, ClientDisconnect):
        return ClientDisconnected()
    words: dict[int, Callable[[], RefractError]] = {
        400: lambda: MalformedBody(why=f"{str(error.detail).rstrip('.')}."),
        404: PageNotFound,
        405: lambda: MethodNotAllowed(method=request.method),
        413: lambda: BodyTooLarge(limit=request.app.state.rt.settings.max_body_bytes),
        415: UnsupportedMediaType,
    }
    return words.get(error.status_code, InternalError)()
