"""Shared tags: the vocabulary of links."""

from typing import Annotated, Literal

from fastapi import Query

from refract.core.page import Cursors, InvalidCursor
from refract.core.schema import Id, Output
from refract.identity import audit
from refract.identity.actors import Admin, Reader
from refract.identity.errors import AdministratorsOnly
from refract.links import queries
from refract.links.edge import ASKING, who
from refract.tags import service
from refract.tags.errors import InvalidTag, TagExists, TagNotFound
from refract.tags.queries import TagSort, page_of_tags, tags_by_id
from refract.tags.schemas import TagOut, TagPatch
from refract.web.problems import problems
from refract.web.toolkit import PAGE, Cursor, Limit, Rt, api_router

router = api_router("/tags", "tags")


class TagPage(Output):
    items: list[TagOut]
    next_cursor: str | None


@router.get("", responses=problems(*ASKING, InvalidCursor))
async def list_tags(
    actor: Reader,
    rt: Rt,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    scope: Annotated[Literal["shared"], Query(description="The vocabulary of links.")] = "shared",  # noqa: ARG001 - one so far
    q: Annotated[str | None, Query(max_length=200, description="What the name must contain.")] = None,
    sort: Annotated[TagSort, Query(description="By name from A to Z, or the most used or latest first.")] = TagSort.NAME,
) -> TagPage:
    """Tags on links that I may see. One that is only on links of others does not show."""
    async with rt.db.read() as session:
        page = await page_of_tags(
            session,
            Cursors(rt.secret),
            queries.visible_tags(who(actor)),
            [actor.user.id, actor.is_admin],
            q=q,
            sort=sort,
            limit=limit,
            cursor=cursor,
        )
    return TagPage(items=[TagOut.of(tag) for tag in page.items], next_cursor=page.next_cursor)


@router.patch("/{tag_id}", responses=problems(*ASKING, AdministratorsOnly, TagNotFound, InvalidTag, TagExists))
async def change_tag(tag_id: Id, changes: TagPatch, actor: Admin, rt: Rt) -> TagOut:
    """Rename a shared tag or give it a colour; its slug stays. For administrators."""
    async with rt.db.write() as session:
        tag = (await tags_by_id(session, [tag_id])).get(tag_id)
        if tag is None or tag.scope != "shared":
            raise TagNotFound
        await service.change_shared(session, tag, name=changes.name, color=changes.color)
        await audit.note(session, rt, "tag.changed", actor=actor.user, target=tag.key)
        return TagOut.of(tag)
