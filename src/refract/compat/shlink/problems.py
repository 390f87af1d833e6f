"""Errors in Shlink's shape: problem documents with types of its own."""

from typing import Any

from starlette.responses import Response

from refract.compat.pagination import dump_json
from refract.compat.request import DialectRequest
from refract.compat.shlink.errors import (
    MercureNotConfigured,
    ShlinkDomainNotFound,
    ShlinkTagNotFound,
    TagChangeNotAllowed,
    UnsupportedShortUrlField,
)
from refract.core.errors import Invalid, Malformed, RefractError, Unauthenticated
from refract.identity.errors import SignInRequired
from refract.links.errors import ExpiryInPast, LinkNotFound, TooManyTags
from refract.links.safety.errors import BlockedDestination, InvalidUrl, LinkLoop, MaliciousUrl
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.tags.errors import InvalidTag, TagExists
from refract.web.problems import STATUS_TITLES, ValidationFailed

_TYPES = "https://shlink.io/api/error/"
_FIELDS: dict[type[RefractError], str] = {
    InvalidUrl: "longUrl",
    LinkLoop: "longUrl",
    BlockedDestination: "longUrl",
    MaliciousUrl: "longUrl",
    InvalidSlug: "customSlug",
    InvalidTag: "tags",
    TooManyTags: "tags",
    ExpiryInPast: "validUntil",
}


def make_problem(request: DialectRequest, error: RefractError) -> Response:
    status, slug, title = _describe(error)
    document = {
        "type": f"{_TYPES}{slug}",
        "title": title,
        "detail": str(error.message),
        "status": status,
        **_list_members(request, error),
    }
    return Response(dump_json(document), status, media_type="application/problem+json")


_KINDS: tuple[tuple[tuple[type[RefractError], ...], int, str, str], ...] = (
    ((SignInRequired,), 401, "missing-authentication", "Invalid authorization"),
    ((Unauthenticated,), 401, "invalid-api-key", "Invalid API key"),
    ((SlugTaken, SlugReserved), 400, "non-unique-slug", "Invalid custom slug"),
    ((LinkNotFound,), 404, "short-url-not-found", "Short URL not found"),
    ((ShlinkTagNotFound,), 404, "tag-not-found", "Tag not found"),
    ((ShlinkDomainNotFound,), 404, "domain-not-found", "Domain not found"),
    ((TagExists,), 409, "tag-conflict", "Tag conflict"),
    ((TagChangeNotAllowed,), 403, "forbidden-tag-operation", "Forbidden tag operation"),
    ((MercureNotConfigured,), 501, "mercure-not-configured", "Mercure integration not configured"),
    ((Malformed,), 400, "malformed-request-body", "Malformed request body"),
    ((Invalid,), 400, "invalid-data", "Invalid data"),
)
"""Status, end of the type, and title of errors; the first match counts."""


def _describe(error: RefractError) -> tuple[int, str, str]:
    for kinds, status, slug, title in _KINDS:
        if isinstance(error, kinds):
            return status, slug, title
    title = STATUS_TITLES.get(error.status, "Problem")
    return error.status, title.lower().replace(" ", "-"), title


def _list_members(request: DialectRequest, error: RefractError) -> dict[str, Any]:
    """Return the further members that clients read."""
    match error:
        case SignInRequired():
            one_step = request.path == "/short-urls/shorten"
            return {"param": "apiKey"} if one_step else {"expectedHeaders": ["X-Api-Key"]}
        case SlugTaken() | SlugReserved():
            return {"customSlug": str(error.facts["name"])}
        case LinkNotFound():
            return {"shortCode": request.path_params.get("code", "")}
        case ShlinkTagNotFound() | ShlinkDomainNotFound():
            return {name: str(fact) for name, fact in error.facts.items()}
        case Invalid():
            return {"invalidElements": _list_elements(error)}
    return {}


def _list_elements(error: Invalid) -> list[str]:
    if isinstance(error, UnsupportedShortUrlField):
        return [error.field]
    if isinstance(error, ValidationFailed):
        return list(dict.fromkeys(field.field.partition(".")[0] for field in error.errors))
    return [name] if (name := _FIELDS.get(type(error))) else []
