"""Bookmarks: list, check, create, read, change, archive and delete."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from refract.compat.linkding.errors import BookmarkNotFound, InvalidBookmark
from refract.compat.linkding.schemas import LinkdingBookmarkFields
from refract.compat.linkding.service import ITEM, assign_numbers, find_object, load_numbers
from refract.compat.linkding.shapes import build_bookmark, build_metadata
from refract.compat.pagination import (
    MAX_NUMBER,
    NumberedPage,
    dump_json,
    make_json_response,
    make_list_response,
)
from refract.compat.request import DialectRequest, parse_time
from refract.compat.search import parse_search
from refract.core.db.session import WriteSession
from refract.core.phrases import Phrase
from refract.library import service
from refract.library.errors import ItemNotFound
from refract.library.models import Item, ItemStatus
from refract.library.queries.items import get_own_item
from refract.library.queries.numbered import (
    PageFilter,
    PageSort,
    count_pages,
    find_page,
    load_pages,
    load_tag_names,
)
from refract.library.recognition import recognize_text
from refract.library.schemas import (
    MAX_NOTES_LENGTH,
    MAX_SUMMARY_LENGTH,
    MAX_TITLE_LENGTH,
    ItemCreate,
    ItemPatch,
)
from refract.library.service import LockedItem

DEFAULT_LIMIT = 100
MAX_TAG_LENGTH = 50
_CHOICES = {"yes": True, "no": False}


async def list_bookmarks(request: DialectRequest) -> Response:
    return await _list(request, archived=False)


async def list_archived_bookmarks(request: DialectRequest) -> Response:
    return await _list(request, archived=True)


async def list_shared_bookmarks(request: DialectRequest) -> Response:  # noqa: ARG001 - a handler
    """List nothing: bookmarks are never shared here."""
    return make_json_response(EMPTY_PAGE)


EMPTY_PAGE: Mapping[str, Any] = {"count": 0, "next": None, "previous": None, "results": []}


async def _list(request: DialectRequest, *, archived: bool) -> Response:
    rt, user_id, page = request.rt, request.caller.user.id, parse_page(request)
    filters = _parse_filter(request, archived=archived)
    if request.query_params.get("shared") == "yes" or request.query_params.get("bundle"):
        return make_json_response(EMPTY_PAGE)
    async with rt.db.read() as session:
        total = await count_pages(session, filters)

    async def load() -> Any:
        for part in page.iter_batches(total):
            async with rt.db.read() as session:
                items = await load_pages(session, filters, part.offset, part.limit)
                names = await load_tag_names(session, [item.id for item in items])
            numbers = await load_numbers(rt, user_id, list(names), ITEM)
            yield [build_bookmark(item, numbers[item.id], names[item.id]) for item in items]

    return await make_list_response(load(), **enclose_page(request, page, total))


def parse_page(request: DialectRequest) -> NumberedPage:
    limit = request.get_int("limit", DEFAULT_LIMIT, 1, MAX_NUMBER)
    return NumberedPage(request.get_int("offset", 0, 0, MAX_NUMBER), limit)


def enclose_page(request: DialectRequest, page: NumberedPage, total: int) -> dict[str, str]:
    """Return the text before and after the objects of a list, with the neighbouring pages."""
    after = page.offset + page.limit
    before = max(0, page.offset - page.limit)
    around = {
        "count": total,
        "next": _build_url(request, page.limit, after) if after < total else None,
        "previous": _build_url(request, page.limit, before) if page.offset else None,
    }
    return {"head": f'{dump_json(around)[:-1]},"results":[', "tail": "]}"}


def _build_url(request: DialectRequest, limit: int, offset: int) -> str:
    kept = [
        (name, text)
        for name, text in request.query_params.multi_items()
        if name not in ("limit", "offset")
    ]
    query = urlencode([*kept, ("limit", limit), *([("offset", offset)] if offset else [])])
    return f"{request.rt.settings.public_url}/api{request.path}/?{query}"


def _parse_filter(request: DialectRequest, *, archived: bool) -> PageFilter:
    query = request.query_params
    sort, _, direction = query.get("sort", "added_desc").partition("_")
    return PageFilter(
        request.caller.user.id,
        parse_search(query.get("q", "")),
        archived=archived,
        unread=_CHOICES.get(query.get("unread", "")),
        added_since=request.get_time("added_since"),
        modified_since=request.get_time("modified_since"),
        sort=PageSort(sort) if sort in list(PageSort) else PageSort.ADDED,
        descending=direction != "asc",
    )


async def check_bookmark(request: DialectRequest) -> Response:
    """Return the bookmark of a URL, if any. The URL comes back as it was asked."""
    url, rt = request.query_params.get("url", ""), request.rt
    digest = recognize_text(url).url_digest
    item = None
    if digest is not None:
        async with rt.db.read() as session:
            item = await find_page(session, request.caller.user.id, digest)
    found: dict[str, Any] = {
        "bookmark": None if item is None else await _show(request, item),
        "metadata": build_metadata(url, item),
        "auto_tags": [],
    }
    return make_json_response(found)


async def create_bookmark(request: DialectRequest) -> Response:
    """Save a URL, or change the bookmark that it has already: 201 in both cases.

    What a client has described is saved at once, everything else is described here.
    """
    given = await request.parse_fields(LinkdingBookmarkFields)
    if not given.url:
        raise InvalidBookmark("url", Phrase("This field is required."))
    digest = _require_page(given.url)
    changes = _build_patch(given)
    rt, caller = request.rt, request.caller
    async with rt.db.write() as session:
        item = await find_page(session, caller.user.id, digest)
        if item is None:
            described = bool(given.title) or "disable_scraping" in request.query_params
            new = ItemCreate(text=given.url.strip(), enrich=not described)
            item = (await service.capture_item(session, rt, caller.user, new)).item
        locked = await _change(request, session, item.id, changes, given)
        shown = await _show_locked(session, locked)
    return make_json_response(shown, 201)


async def read_bookmark(request: DialectRequest) -> Response:
    async with request.rt.db.read() as session:
        item = await get_own_item(session, request.caller.user.id, await _find_item_id(request))
    return make_json_response(await _show(request, item))


async def change_bookmark(request: DialectRequest) -> Response:
    """Change a bookmark. What is not given stays, with PUT too."""
    given = await request.parse_fields(LinkdingBookmarkFields)
    changes, rt = _build_patch(given), request.rt
    item_id = await _find_item_id(request)
    async with rt.db.write() as session:
        if given.url:
            other = await find_page(session, request.caller.user.id, _require_page(given.url))
            if other is not None and other.id != item_id:
                raise InvalidBookmark("url", Phrase("A bookmark with this URL already exists."))
            changes = changes.model_copy(update={"text": given.url.strip()})
            changes = ItemPatch.model_validate(changes.model_dump(exclude_unset=True))
        locked = await _change(request, session, item_id, changes, given)
        shown = await _show_locked(session, locked)
    return make_json_response(shown)


async def archive_bookmark(request: DialectRequest) -> Response:
    return await _set_archived(request, archived=True)


async def unarchive_bookmark(request: DialectRequest) -> Response:
    return await _set_archived(request, archived=False)


async def _set_archived(request: DialectRequest, *, archived: bool) -> Response:
    item_id, rt = await _find_item_id(request), request.rt
    async with rt.db.write() as session:
        locked = await service.lock_item(session, rt, request.caller.user.id, item_id)
        await service.edit_item(locked, ItemPatch(archived=archived))
    return Response(status_code=204)


async def delete_bookmark(request: DialectRequest) -> Response:
    """Discard an item. In the web app that can be undone."""
    item_id, rt = await _find_item_id(request), request.rt
    async with rt.db.write() as session:
        locked = await service.lock_item(session, rt, request.caller.user.id, item_id)
        await service.discard_item(locked)
    return Response(status_code=204)


async def list_assets(request: DialectRequest) -> Response:
    """List nothing, for a bookmark of the caller's: there are no files of bookmarks."""
    await _find_item_id(request)
    return make_json_response(EMPTY_PAGE)


async def _find_item_id(request: DialectRequest) -> int:
    """Return the id of the bookmark in the path. Raises `BookmarkNotFound`."""
    number, user_id = int(request.path_params["number"]), request.caller.user.id
    async with request.rt.db.read() as session:
        item_id = await find_object(session, user_id, number, ITEM)
        if item_id is None:
            raise BookmarkNotFound
        try:
            item = await get_own_item(session, user_id, item_id)
        except ItemNotFound as exc:
            raise BookmarkNotFound from exc
    if item.status == ItemStatus.DISCARDED:
        raise BookmarkNotFound
    return item_id


def _require_page(url: str) -> str:
    """Return the digest of a URL. Raises `InvalidBookmark`."""
    digest = recognize_text(url).url_digest
    if digest is None:
        raise InvalidBookmark("url", Phrase("Enter a valid URL."))
    return digest


def _build_patch(given: LinkdingBookmarkFields) -> ItemPatch:
    """Return the fields that were given, in our words. Titles and tags are shortened to fit."""
    if given.shared:
        raise InvalidBookmark("shared", Phrase("Bookmarks can't be shared here."))
    for field, text, most in (
        ("description", given.description, MAX_SUMMARY_LENGTH),
        ("notes", given.notes, MAX_NOTES_LENGTH),
    ):
        if text is not None and len(text.strip()) > most:
            raise InvalidBookmark(field, Phrase("Enter at most {limit} characters.", limit=most))
    fields: dict[str, Any] = {
        "title": given.title and given.title.strip()[:MAX_TITLE_LENGTH],
        "summary": given.description,
        "notes": given.notes,
        "unread": given.unread,
        "archived": given.is_archived,
    }
    if given.tag_names is not None:
        names = (name.strip()[:MAX_TAG_LENGTH].strip() for name in given.tag_names)
        fields |= {"tag_ids": [], "new_tags": [name for name in names if name]}
    return ItemPatch(**{name: value for name, value in fields.items() if value is not None})


async def _change(
    request: DialectRequest,
    session: WriteSession,
    item_id: int,
    changes: ItemPatch,
    given: LinkdingBookmarkFields,
) -> LockedItem:
    rt = request.rt
    locked = await service.lock_item(session, rt, request.caller.user.id, item_id)
    if changes.model_fields_set:
        await service.edit_item(locked, changes)
    now = rt.clock.now()
    for field, column in (("date_added", "created_at"), ("date_modified", "updated_at")):
        if text := getattr(given, field):
            setattr(locked.item, column, min(parse_time(field, text), now))
    await session.flush()
    return locked


async def _show(request: DialectRequest, item: Item) -> dict[str, Any]:
    async with request.rt.db.read() as session:
        names = await load_tag_names(session, [item.id])
    numbers = await load_numbers(request.rt, request.caller.user.id, [item.id], ITEM)
    return build_bookmark(item, numbers[item.id], names[item.id])


async def _show_locked(session: WriteSession, locked: LockedItem) -> dict[str, Any]:
    item = locked.item
    numbers = await assign_numbers(session, item.user_id, [item.id], ITEM)
    names = await load_tag_names(session, [item.id])
    return build_bookmark(item, numbers[item.id], names[item.id])
