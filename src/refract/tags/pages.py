"""A page of tags. Shared tags and one's own lie under two addresses and look alike."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from sqlalchemy import ColumnElement
from starlette.responses import Response

from refract.core.db import ReadSession
from refract.core.page import Cursors, Page
from refract.core.runtime import Runtime
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.tags.models import Tag
from refract.tags.queries import TagSort, page_of_tags
from refract.web.toolkit import Cursor

PER_PAGE = 100
SORTS = [(TagSort.USAGE.value, "Most used"), (TagSort.NAME.value, "A to Z"), (TagSort.LAST_USED.value, "Used last")]
Refused = tuple[str, str, str]
"""Which tag, what was typed for its name, and what is wrong with that."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for."""

    cursor: str | None = None
    q: str | None = None
    sort: TagSort = TagSort.USAGE


def _asked(cursor: Cursor = None, q: Annotated[str | None, Query(max_length=200)] = None, sort: TagSort = TagSort.USAGE) -> Asked:
    return Asked(cursor, q, sort)


TagsAsked = Annotated[Asked, Depends(_asked)]


async def read_tags(session: ReadSession, rt: Runtime, visible: ColumnElement[bool], asker: object, asked: Asked) -> Page[Tag]:
    return await page_of_tags(session, Cursors(rt.secret), visible, asker, q=asked.q, sort=asked.sort, limit=PER_PAGE, cursor=asked.cursor)


def show_tags(request: Request, actor: Actor, here: str, page: Page[Tag], asked: Asked, **context: Any) -> Response:
    """`here` is the address of the page."""
    further = {**({"q": asked.q} if asked.q else {}), "sort": asked.sort.value, "cursor": page.next_cursor}
    return respond(
        request,
        actor,
        "tags/index.html",
        page_title="Tags",
        tags=page.items,
        most=max((tag.usage_count for tag in page.items), default=0),
        q=asked.q or "",
        sort=asked.sort.value,
        sorts=SORTS,
        next_url=f"{here}?{urlencode(further)}" if page.next_cursor else None,
        **context,
    )
