"""Dependencies shared by endpoints: runtime, pagination, ETags."""

import re
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Header, Query, Request

from refract.core.errors import ExpectedVersions, Malformed
from refract.core.pagination import DEFAULT_LIMIT, MAX_CURSOR_LENGTH, MAX_LIMIT
from refract.core.runtime import Runtime
from refract.web.routing import ApiRoute, PageRoute


async def get_runtime(request: Request) -> Runtime:
    """Return the runtime. Every endpoint that uses the database depends on it.

    Dependencies are coroutines, since the framework runs plain functions in a thread.
    """
    runtime: Runtime = request.app.state.rt
    return runtime


Rt = Annotated[Runtime, Depends(get_runtime)]


def api_router(prefix: str, tag: str) -> APIRouter:
    """Return a router whose POSTs accept Idempotency-Key."""
    return APIRouter(prefix=f"/api/v1{prefix}", tags=[tag], route_class=ApiRoute)


def page_router() -> APIRouter:
    """Return a router for pages and forms, which are not in the OpenAPI document."""
    return APIRouter(include_in_schema=False, route_class=PageRoute)


LimitParam = Annotated[
    int, Query(ge=1, le=MAX_LIMIT, description="How many rows to answer at most.")
]
CursorParam = Annotated[
    str | None, Query(max_length=MAX_CURSOR_LENGTH, description="`next_cursor` of the page before.")
]
PER_PAGE = 25
"""Rows of a table on one page."""
DEFAULT_PAGE_SIZE = DEFAULT_LIMIT

IfMatchHeader = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=1000,
        description=(
            "Change only this version: the ETag of the last response, or several separated by"
            " commas."
        ),
    ),
]


_ETAG = re.compile(r"""(?:W/)?"?(?P<version>[0-9]{1,18})(?:-[0-9a-f]+)?"?""")


class InvalidEtag(Malformed):
    """If-Match isn't a valid ETag. Send the ETag of the last response."""


def make_etag(version: int) -> str:
    return f'"{version}"'


def parse_if_match(if_match: str | None) -> ExpectedVersions:
    """Return the versions that a change applies to; None for any.

    An ETag is a version, with or without the digest of a response. Proxies that compress responses
    make it weak (`W/`), which is accepted.
    """
    if if_match is None or if_match.strip() == "*":
        return None
    tags = [_ETAG.fullmatch(tag.strip()) for tag in if_match.split(",")]
    if not all(tags):
        raise InvalidEtag
    return frozenset(int(tag["version"]) for tag in tags if tag)


def build_pager(
    path: str, params: dict[str, str], cursor: str | None, next_cursor: str | None
) -> dict[str, Any]:
    """Return the URLs of the next and the first page, for the pager."""
    kept = {name: value for name, value in params.items() if value}
    return {
        "next_url": f"{path}?{urlencode({**kept, 'cursor': next_cursor})}" if next_cursor else None,
        "first_url": f"{path}?{urlencode(kept)}".rstrip("?") if cursor else None,
    }
