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
PALETTE = {
    "#6B7280": lazy_gettext("Gray"),
    "#B42318": lazy_gettext("Red"),
    "#C2410C": lazy_gettext("Orange"),
    "#A16207": lazy_gettext("Yellow"),
    "#4D7C0F": lazy_gettext("Lime"),
    "#11703F": lazy_gettext("Green"),
    "#0F766E": lazy_gettext("Teal"),
    "#0369A1": lazy_gettext("Sky blue"),
    "#2F4BD6": lazy_gettext("Blue"),
    "#6D28D9": lazy_gettext("Violet"),
    "#A21CAF": lazy_gettext("Purple"),
    "#BE185D": lazy_gettext("Pink"),
}
"""Colors that the form offers, legible in light and dark. The API takes any."""
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
        q=filters.q or "",
        sort=filters.sort.value,
        sorts=SORT_CHOICES,
        palette=PALETTE,
        next_url=f"{path}?{urlencode(next_params)}" if page.next_cursor else None,
        **context,
    )
