"""Tags: the caller's own, and those on a bookmark."""

from typing import Any

from sqlalchemy import and_
from starlette.responses import Response

from refract.compat.karakeep.bookmarks import change_item, find_item_id, list_matching
from refract.compat.karakeep.errors import InvalidKarakeepField, KarakeepObjectNotFound
from refract.compat.karakeep.paths import get_object_id, parse_object_id, read_limit
from refract.compat.karakeep.schemas import KarakeepTagChoices, KarakeepTagFields
from refract.compat.karakeep.search import ALL_TYPES
from refract.compat.karakeep.shapes import build_tag
from refract.compat.pagination import (
    MAX_NUMBER,
    NumberedPage,
    make_json_response,
    make_list_response,
)
from refract.compat.request import DialectRequest
from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec
from refract.core.phrases import Phrase
from refract.library.queries.numbered import PageFilter, count_own_tags, load_own_tags
from refract.library.schemas import ItemPatch
from refract.library.search.jobs import enqueue_reindex_change, enqueue_reindex_tag
from refract.library.service import LockedItem, lock_item, tag_changes
from refract.tags import personal_tags
from refract.tags.grammar import personal_key
from refract.tags.models import Tag
from refract.tags.queries import TagSort, load_tags_page


async def list_tags(request: DialectRequest) -> Response:
    """Return a page of tags, or all of them if no limit is named."""
    if not request.query_params.get("limit"):
        return await _list_all_tags(request)
    rt, user_id = request.rt, request.caller.user.id
    is_by_usage = request.query_params.get("sort") == "usage"
    async with rt.db.read() as session:
        page = await load_tags_page(
            session,
            CursorCodec(rt.secret),
            [and_(Tag.space == user_id, Tag.deleted_at.is_(None))],
            ["karakeep", user_id],
            q=_read_name_filter(request) or None,
            sort=TagSort.USAGE if is_by_usage else TagSort.NAME,
            limit=read_limit(request),
            cursor=request.query_params.get("cursor"),
        )
    tags = [build_tag(tag) for tag in page.items]
    return make_json_response({"tags": tags, "nextCursor": page.next_cursor})


async def _list_all_tags(request: DialectRequest) -> Response:
    rt, user_id, q = request.rt, request.caller.user.id, _read_name_filter(request)
    async with rt.db.read() as session:
        total = await count_own_tags(session, user_id, q)

    async def load() -> Any:
        for part in NumberedPage(0, MAX_NUMBER).iter_batches(total):
            async with rt.db.read() as session:
                tags = await load_own_tags(session, user_id, q, part.offset, part.limit)
            yield [build_tag(tag) for tag in tags]

    return await make_list_response(load(), head='{"tags":[', tail='],"nextCursor":null}')


def _read_name_filter(request: DialectRequest) -> str:
    return request.query_params.get("nameContains", "")[:200]


async def create_tag(request: DialectRequest) -> Response:
    """Create a tag, or return the one of this name."""
    given, rt = await request.parse_fields(KarakeepTagFields), request.rt
    async with rt.db.write() as session:
        made = await personal_tags.create_tag(
            session, rt.ids, request.caller.user.id, given.name, None, rt.clock.now()
        )
    return make_json_response(build_tag(made.tag), 201)


async def read_tag(request: DialectRequest) -> Response:
    async with request.rt.db.read() as session:
        return make_json_response(build_tag(await _find_tag(session, request)))


async def change_tag(request: DialectRequest) -> Response:
    """Rename a tag."""
    given, rt = await request.parse_fields(KarakeepTagFields), request.rt
    user_id = request.caller.user.id
    async with rt.db.write() as session:
        tag = await personal_tags.change_tag(
            session, user_id, get_object_id(request, "tag"), name=given.name
        )
        await enqueue_reindex_tag(session, rt, user_id, tag.id)
    return make_json_response(build_tag(tag))


async def delete_tag(request: DialectRequest) -> Response:
    """Delete a tag and remove it from its bookmarks."""
    rt, user_id = request.rt, request.caller.user.id
    async with rt.db.write() as session:
        changed = await tag_changes.delete_tag(
            session, rt.ids, user_id, get_object_id(request, "tag"), rt.clock.now()
        )
        await enqueue_reindex_change(session, rt, user_id, changed.change_id)
    return Response(status_code=204)


async def list_tagged_bookmarks(request: DialectRequest) -> Response:
    async with request.rt.db.read() as session:
        tag = await _find_tag(session, request)
    user_id = request.caller.user.id
    filters = PageFilter(user_id, archived=None, types=ALL_TYPES, tag_id=tag.id)
    return await list_matching(request, filters)


async def _find_tag(session: ReadSession, request: DialectRequest) -> Tag:
    """Return the caller's tag in the path. Raises `KarakeepObjectNotFound`."""
    tag = await session.get(Tag, get_object_id(request, "tag"))
    if tag is None or tag.space != request.caller.user.id or tag.deleted_at is not None:
        raise KarakeepObjectNotFound
    return tag


async def attach_tags(request: DialectRequest) -> Response:
    """Add tags to a bookmark; missing names are created."""
    given, rt = await request.parse_fields(KarakeepTagChoices), request.rt
    item_id, user_id = await find_item_id(request), request.caller.user.id
    async with rt.db.write() as session:
        names = [choice.tagName for choice in given.tags if not choice.tagId and choice.tagName]
        made = await personal_tags.ensure_tags(session, rt.ids, user_id, names, rt.clock.now())
        chosen = _list_chosen_ids(given) + [tag.id for tag in made.values()]
        locked = await lock_item(session, rt, user_id, item_id)
        await _set_tags(request, session, locked, locked.tag_ids | set(chosen))
    attached = [str(tag_id) for tag_id in dict.fromkeys(chosen)]
    return make_json_response({"attached": attached})


async def detach_tags(request: DialectRequest) -> Response:
    """Remove tags from a bookmark. Those that it does not have are ignored."""
    given, rt = await request.parse_fields(KarakeepTagChoices), request.rt
    item_id, user_id = await find_item_id(request), request.caller.user.id
    keys = [
        personal_key(choice.tagName) for choice in given.tags if not choice.tagId and choice.tagName
    ]
    async with rt.db.write() as session:
        named = await personal_tags.find_tags_by_key(session, user_id, keys)
        chosen = {*_list_chosen_ids(given), *(tag.id for tag in named.values())}
        locked = await lock_item(session, rt, user_id, item_id)
        detached = sorted(chosen & locked.tag_ids)
        await _set_tags(request, session, locked, locked.tag_ids - chosen)
    return make_json_response({"detached": [str(tag_id) for tag_id in detached]})


def _list_chosen_ids(given: KarakeepTagChoices) -> list[int]:
    if not all(choice.tagId or choice.tagName for choice in given.tags):
        raise InvalidKarakeepField("tags", Phrase("Name each tag by its id or its name."))
    return [parse_object_id(choice.tagId) for choice in given.tags if choice.tagId]


async def _set_tags(
    request: DialectRequest, session: WriteSession, locked: LockedItem, tag_ids: set[int]
) -> None:
    if tag_ids != locked.tag_ids:
        await change_item(request, session, locked.item.id, ItemPatch(tag_ids=sorted(tag_ids)))
