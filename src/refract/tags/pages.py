"""The page of tags, for the shared tags of links and for the personal tags of a library."""

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
from refract.web.i18n import gettext, lazy_gettext

PER_PAGE = 100
SORT_CHOICES = [
    (TagSort.USAGE.value, lazy_gettext("Most used")),
    (TagSort.NAME.value, lazy_gettext("A to Z")),
    (TagSort.LAST_USED.value, lazy_gettext("Recently used")),
]
TagFormError = tuple[str, str, str]
"""Id of the tag, the name as typed, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class TagPageFilter:
    """The query parameters of the page."""

    cursor: str | None = None
    q: str | None = None
    sort: TagSort = TagSort.USAGE


async def _read_filter(
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
    viewer: object,
    filters: TagPageFilter,
) -> Page[Tag]:
    return await load_tags_page(
        session,
        CursorCodec(rt.secret),
        [visible],
        viewer,
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
    """Render the page of tags at `path`."""
    next_params = {
        **({"q": filters.q} if filters.q else {}),
        "sort": filters.sort.value,
        "cursor": page.next_cursor,
    }
    return render_response(
        request,
        actor,
        "tags/index.html",
        page_title=gettext("Tags"),
        tags=page.items,
        most=max((tag.usage_count for tag in page.items), default=0),
        q=filters.q or "",
        sort=filters.sort.value,
        sorts=SORT_CHOICES,
        next_url=f"{path}?{urlencode(next_params)}" if page.next_cursor else None,
        **context,
    )
