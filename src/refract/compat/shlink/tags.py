"""Tags: list, statistics, rename and delete."""

from typing import Any

from starlette.responses import Response

from refract.compat.pagination import NumberedPage, make_list_response
from refract.compat.request import DialectRequest
from refract.compat.shlink.errors import ShlinkTagNotFound, TagChangeNotAllowed
from refract.compat.shlink.schemas import TagRenaming
from refract.compat.shlink.shapes import build_tag_stats, enclose_list
from refract.compat.shlink.short_urls import parse_order
from refract.links.queries.numbered import TagSum, TagSumSort, list_tag_sums
from refract.links.service.tags import delete_shared_tag
from refract.tags.service import change_shared_tag, find_live_shared_tags

_ALL_ITEMS = -1
_SORTS = {
    "tag": TagSumSort.NAME,
    "shortUrlsCount": TagSumSort.LINKS,
    "visits": TagSumSort.CLICKS,
    "visitsCount": TagSumSort.CLICKS,
    "nonBotVisits": TagSumSort.PEOPLE,
}


async def list_tags(request: DialectRequest) -> Response:
    return await _list_tags(request, lambda tag: tag.name)


async def list_tag_stats(request: DialectRequest) -> Response:
    return await _list_tags(request, build_tag_stats)


async def _list_tags(request: DialectRequest, show: Any) -> Response:
    rt, page = request.rt, NumberedPage.from_number(request, _ALL_ITEMS)
    field, descending = parse_order(request, "tag-ASC")

    async def load_part(offset: int, limit: int) -> tuple[int, list[TagSum]]:
        async with rt.db.read() as session:
            return await list_tag_sums(
                session,
                request.link_caller,
                q=request.query_params.get("searchTerm", "")[:200],
                sort=_SORTS.get(field, TagSumSort.NAME),
                descending=descending,
                offset=offset,
                limit=limit,
            )

    total, _ = await load_part(0, 1)

    async def load() -> Any:
        for part in page.iter_batches(total):
            yield [show(tag) for tag in (await load_part(part.offset, part.limit))[1]]

    return await make_list_response(load(), **enclose_list("tags", page, total))


def _require_admin(request: DialectRequest) -> None:
    if not request.caller.is_admin:
        raise TagChangeNotAllowed


async def rename_tag(request: DialectRequest) -> Response:
    """Rename a shared tag, for administrators."""
    rt, given = request.rt, await request.parse_fields(TagRenaming)
    _require_admin(request)
    async with rt.db.write() as session:
        found = await find_live_shared_tags(session, [given.old_name])
        for tag in found.values():
            await change_shared_tag(
                session, tag, by=request.caller.user.id, at=rt.clock.now(), name=given.new_name
            )
    if not found:
        raise ShlinkTagNotFound(tag=given.old_name)
    return Response(status_code=204)


async def delete_tags(request: DialectRequest) -> Response:
    """Remove shared tags from all links, for administrators. Unknown ones are ignored."""
    rt = request.rt
    _require_admin(request)
    async with rt.db.write() as session:
        for tag_id in sorted(await find_live_shared_tags(session, request.list_values("tags"))):
            await delete_shared_tag(session, tag_id, request.caller.user.id, rt.clock.now())
    return Response(status_code=204)
