"""A page of tags. Shared tags and one's own lie under two addresses and look alike."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from sqlalchemy import ColumnElement
from starlette.responses import Response

from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec, Page
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.identity.responses import render_response
from refract.tags.models import Tag
from refract.tags.queries import TagSort, load_tags_page
from refract.web.dependencies import CursorParam

PER_PAGE = 100
SORT_CHOICES = [
    (TagSort.USAGE.value, "Most used"),
    (TagSort.NAME.value, "A to Z"),
    (TagSort.LAST_USED.value, "Used last"),
]
TagFormError = tuple[str, str, str]
"""Which tag, what was typed for its name, and what is wrong with that."""


@dataclass(frozen=True, slots=True)
class TagPageFilter:
    """What the address asks for."""

    cursor: str | None = None
    q: str | None = None
    sort: TagSort = TagSort.USAGE


def _read_filter(
    cursor: CursorParam = None,
    q: Annotated[str | None, Query(max_length=200)] = None,
    sort: TagSort = TagSort.USAGE,
) -> TagPageFilter:
    return TagPageFilter(cursor, q, sort)


TagPageFilterQuery = Annotated[TagPageFilter, Depends(_read_filter)]


async def load_tags(
    session: ReadSession,
    rt: Runtime,
    visible: ColumnElement[bool],
    asker: object,
    filters: TagPageFilter,
) -> Page[Tag]:
    return await load_tags_page(
        session,
        CursorCodec(rt.secret),
        visible,
        asker,
        q=filters.q,
        sort=filters.sort,
        limit=PER_PAGE,
        cursor=filters.cursor,
    )


def render_tags(
    request: Request,
    actor: Caller,
    path: str,
    page: Page[Tag],
    filters: TagPageFilter,
    **context: Any,
) -> Response:
    """`here` is the address of the page."""
    further = {
        **({"q": filters.q} if filters.q else {}),
        "sort": filters.sort.value,
        "cursor": page.next_cursor,
    }
    return render_response(
        request,
        actor,
        "tags/index.html",
        page_title="Tags",
        tags=page.items,
        most=max((tag.usage_count for tag in page.items), default=0),
        q=filters.q or "",
        sort=filters.sort.value,
        sorts=SORT_CHOICES,
        next_url=f"{path}?{urlencode(further)}" if page.next_cursor else None,
        **context,
    )
