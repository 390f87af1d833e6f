"""API of tags: the shared ones of links, and each user's own for the library."""

from typing import Annotated, Literal

from fastapi import Query, Response
from sqlalchemy import ColumnElement, and_, select

from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id, OutputSchema
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.errors import AdminRequired
from refract.library.search.jobs import enqueue_reindex_change, enqueue_reindex_tag
from refract.library.service import tag_changes
from refract.links.dependencies import to_link_caller
from refract.links.queries import is_visible_tag
from refract.links.service import tags as link_tags
from refract.tags import personal_tags, service
from refract.tags.errors import (
    AliasNotFound,
    InvalidTag,
    NoTagChange,
    NothingToMerge,
    TagExists,
    TagNameReserved,
    TagNotFound,
)
from refract.tags.models import SHARED_SPACE, Tag
from refract.tags.queries import TagSort, find_tags_by_id, load_tags_page
from refract.tags.schemas import TagCreate, TagMerge, TagOut, TagPatch
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems

router = api_router("/tags", "tags")
TagScopeParam = Literal["personal", "shared"]


class TagPage(OutputSchema):
    items: list[TagOut]
    next_cursor: str | None


@router.get("")
async def list_tags(
    actor: ReadCaller,
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    scope: Annotated[
        TagScopeParam | None,
        Query(description="Your own tags, or those of links. Default: both."),
    ] = None,
    q: Annotated[
        str | None, Query(max_length=200, description="Text that the name contains.")
    ] = None,
    sort: Annotated[
        TagSort, Query(description="By name from A to Z, most used first, or latest first.")
    ] = TagSort.NAME,
    unused: Annotated[
        bool | None, Query(description="Only tags that are unused, or only others.")
    ] = None,
) -> TagPage:
    """List your own tags, and those on links that you can see.

    A shared tag that is only on links of others is not listed.
    """
    async with rt.db.read() as session:
        page = await load_tags_page(
            session,
            CursorCodec(rt.secret),
            _build_visible_clauses(actor, scope),
            [actor.user.id, actor.is_admin, scope],
            q=q,
            sort=sort,
            unused=unused,
            limit=limit,
            cursor=cursor,
        )
        aliases = await personal_tags.list_aliases(session, [tag.id for tag in page.items])
    return TagPage(
        items=[TagOut.from_tag(tag, aliases[tag.id]) for tag in page.items],
        next_cursor=page.next_cursor,
    )


@router.post(
    "",
    status_code=201,
    responses=problems(InvalidTag, AdminRequired)
    | {200: {"model": TagOut, "description": "The tag existed already."}},
)
async def create_tag(new: TagCreate, actor: WriteCaller, rt: Rt, response: Response) -> TagOut:
    """Create a tag.

    The name of a deleted tag revives it, with the same id and on no item. A merged name returns the
    tag it means now.
    """
    async with rt.db.write() as session:
        if new.scope == "shared":
            return await _create_shared_tag(session, rt, actor, new, response)
        made = await personal_tags.create_tag(
            session, rt.ids, actor.user.id, new.name, new.color, rt.clock.now()
        )
        response.status_code = 200 if made.how == "existing" else 201
        return await _build_tag_out(session, made.tag)


@router.patch(
    "/{tag_id}",
    responses=problems(AdminRequired, TagNotFound, InvalidTag, TagExists, TagNameReserved),
)
async def change_tag(tag_id: Id, changes: TagPatch, actor: WriteCaller, rt: Rt) -> TagOut:
    """Rename a tag or change its colour.

    A shared tag keeps its slug, and only administrators can change it.
    """
    async with rt.db.write() as session:
        tag = await _get_visible_tag(session, actor, tag_id)
        if tag.space != SHARED_SPACE:
            tag = await personal_tags.change_tag(
                session, actor.user.id, tag_id, name=changes.name, color=changes.color
            )
            if changes.name is not None:
                await enqueue_reindex_tag(session, rt, actor.user.id, tag.id)
            return await _build_tag_out(session, tag)
        if not actor.is_admin:
            raise AdminRequired
        await service.change_shared_tag(
            session,
            tag,
            by=actor.user.id,
            at=rt.clock.now(),
            name=changes.name,
            color=changes.color,
        )
        return TagOut.from_tag(tag)


@router.delete("/{tag_id}", status_code=204, responses=problems(TagNotFound, AdminRequired))
async def delete_tag(tag_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Delete one of your tags and remove it from its items.

    Its name revives it; `undo` also puts it back on the items, within 24 hours. Administrators
    can delete a shared tag, which removes it from all links and can't be undone.
    """
    async with rt.db.write() as session:
        if await _is_shared(session, actor, tag_id):
            await link_tags.delete_shared_tag(session, tag_id, actor.user.id, rt.clock.now())
            return Response(status_code=204)
        changed = await tag_changes.delete_tag(
            session, rt.ids, actor.user.id, tag_id, rt.clock.now()
        )
        await enqueue_reindex_change(session, rt, actor.user.id, changed.change_id)
    return Response(status_code=204)


@router.post("/merge", responses=problems(TagNotFound, NothingToMerge, AdminRequired))
async def merge_tags(merge: TagMerge, actor: WriteCaller, rt: Rt) -> TagOut:
    """Merge several of your tags, or as an administrator several shared ones.

    The target keeps its name, and the names of the others become its aliases. A merge of shared
    tags can't be undone.
    """
    async with rt.db.write() as session:
        if await _is_shared(session, actor, merge.target):
            target = await link_tags.merge_shared_tags(
                session, merge.target, merge.sources, actor.user.id, rt.clock.now()
            )
            return await _build_tag_out(session, target)
        changed = await tag_changes.merge_tags(
            session, rt.ids, actor.user.id, merge.target, merge.sources, rt.clock.now()
        )
        await enqueue_reindex_change(session, rt, actor.user.id, changed.change_id)
        return await _build_tag_out(session, changed.tag)


@router.post("/{tag_id}/undo", responses=problems(TagNotFound, NoTagChange))
async def undo_tag(tag_id: Id, actor: WriteCaller, rt: Rt) -> TagOut:
    """Undo the latest merge into this tag, or its deletion: the items are tagged as before."""
    async with rt.db.write() as session:
        changed = await tag_changes.undo_tag_change(session, actor.user.id, tag_id, rt.clock.now())
        await enqueue_reindex_change(session, rt, actor.user.id, changed.change_id)
        return await _build_tag_out(session, changed.tag)


@router.delete("/{tag_id}/aliases", status_code=204, responses=problems(TagNotFound, AliasNotFound))
async def delete_alias(
    tag_id: Id,
    actor: WriteCaller,
    rt: Rt,
    name: Annotated[str, Query(max_length=200, description="The alias.", examples=["k8s"])],
) -> Response:
    """Remove an alias of a tag. Used again, the name revives the tag that once had it."""
    async with rt.db.write() as session:
        await personal_tags.delete_alias(session, actor.user.id, tag_id, name)
    return Response(status_code=204)


def _build_visible_clauses(actor: Caller, scope: TagScopeParam | None) -> list[ColumnElement[bool]]:
    """Return the conditions of the user's own tags and of shared ones."""
    mine = and_(Tag.space == actor.user.id, Tag.deleted_at.is_(None))
    shared = is_visible_tag(to_link_caller(actor))
    if scope is not None:
        return [mine] if scope == "personal" else [shared]
    return [mine, shared]


async def _get_visible_tag(session: ReadSession, actor: Caller, tag_id: int) -> Tag:
    """Return a tag that the caller may see. Administrators see all shared ones."""
    tag = (await find_tags_by_id(session, [tag_id])).get(tag_id)
    if tag is None or tag.space not in (SHARED_SPACE, actor.user.id):
        raise TagNotFound
    if tag.space == SHARED_SPACE and not actor.is_admin:
        seen = select(Tag.id).where(Tag.id == tag_id, is_visible_tag(to_link_caller(actor)))
        if await session.scalar(seen) is None:
            raise TagNotFound
    return tag


async def _is_shared(session: ReadSession, actor: Caller, tag_id: int) -> bool:
    """Return whether a tag is a shared one, which only administrators can delete and merge."""
    tag = await _get_visible_tag(session, actor, tag_id)
    if tag.space == SHARED_SPACE and not actor.is_admin:
        raise AdminRequired
    return tag.space == SHARED_SPACE


async def _create_shared_tag(
    session: WriteSession, rt: Runtime, actor: Caller, new: TagCreate, response: Response
) -> TagOut:
    if not actor.is_admin:
        raise AdminRequired
    tag, made = await service.create_shared_tag(
        session, rt.ids, new.name, new.color, rt.clock.now()
    )
    response.status_code = 201 if made else 200
    return TagOut.from_tag(tag)


async def _build_tag_out(session: ReadSession, tag: Tag) -> TagOut:
    return TagOut.from_tag(tag, (await personal_tags.list_aliases(session, [tag.id]))[tag.id])
