"""Tags of bookmarks: the caller's own."""

from typing import Any

from starlette.responses import Response

from refract.compat.linkding.bookmarks import enclose_page, parse_page
from refract.compat.linkding.errors import LinkdingTagNotFound
from refract.compat.linkding.schemas import LinkdingTagFields
from refract.compat.linkding.service import TAG, find_object, load_numbers
from refract.compat.linkding.shapes import build_tag
from refract.compat.pagination import make_json_response, make_list_response
from refract.compat.request import DialectRequest
from refract.library.queries.numbered import count_own_tags, load_own_tags
from refract.library.search.jobs import enqueue_reindex_change
from refract.library.service import tag_changes
from refract.tags import personal_tags
from refract.tags.models import Tag


async def list_tags(request: DialectRequest) -> Response:
    rt, user_id, page = request.rt, request.caller.user.id, parse_page(request)
    q = request.query_params.get("q", "")[:200]
    async with rt.db.read() as session:
        total = await count_own_tags(session, user_id, q)

    async def load() -> Any:
        for part in page.iter_batches(total):
            async with rt.db.read() as session:
                tags = await load_own_tags(session, user_id, q, part.offset, part.limit)
            numbers = await load_numbers(rt, user_id, [tag.id for tag in tags], TAG)
            yield [build_tag(tag, numbers[tag.id]) for tag in tags]

    return await make_list_response(load(), **enclose_page(request, page, total))


async def create_tag(request: DialectRequest) -> Response:
    """Create a tag, or return the one of this name."""
    given, rt = await request.parse_fields(LinkdingTagFields), request.rt
    user_id = request.caller.user.id
    async with rt.db.write() as session:
        made = await personal_tags.create_tag(
            session, rt.ids, user_id, given.name, None, rt.clock.now()
        )
    return make_json_response(await _show(request, made.tag), 201)


async def read_tag(request: DialectRequest) -> Response:
    return make_json_response(await _show(request, await _find_tag(request)))


async def delete_tag(request: DialectRequest) -> Response:
    """Delete a tag and remove it from its bookmarks."""
    tag, rt, user_id = await _find_tag(request), request.rt, request.caller.user.id
    async with rt.db.write() as session:
        changed = await tag_changes.delete_tag(session, rt.ids, user_id, tag.id, rt.clock.now())
        await enqueue_reindex_change(session, rt, user_id, changed.change_id)
    return Response(status_code=204)


async def _find_tag(request: DialectRequest) -> Tag:
    """Return the tag in the path. Raises `LinkdingTagNotFound`."""
    number, user_id = int(request.path_params["number"]), request.caller.user.id
    async with request.rt.db.read() as session:
        tag_id = await find_object(session, user_id, number, TAG)
        tag = None if tag_id is None else await session.get(Tag, tag_id)
    if tag is None or tag.space != user_id or tag.deleted_at is not None:
        raise LinkdingTagNotFound
    return tag


async def _show(request: DialectRequest, tag: Tag) -> dict[str, Any]:
    numbers = await load_numbers(request.rt, request.caller.user.id, [tag.id], TAG)
    return build_tag(tag, numbers[tag.id])
