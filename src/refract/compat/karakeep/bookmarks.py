"""Bookmarks: list, search, check, create, read, change and delete."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from refract.compat.karakeep.errors import (
    AssetsNotSupported,
    InvalidKarakeepField,
    KarakeepBookmarkNotFound,
)
from refract.compat.karakeep.paths import get_object_id, read_limit
from refract.compat.karakeep.schemas import KarakeepBookmarkCreate, KarakeepBookmarkFields
from refract.compat.karakeep.search import ALL_TYPES, parse_karakeep_search
from refract.compat.karakeep.shapes import build_bookmark
from refract.compat.pagination import make_json_response
from refract.compat.request import DialectRequest, parse_time
from refract.core.db.session import WriteSession
from refract.core.errors import NotFound
from refract.core.pagination import CursorCodec
from refract.core.phrases import Phrase
from refract.library import service
from refract.library.errors import ItemNotFound
from refract.library.models import Item, ItemStatus
from refract.library.queries.items import get_own_item
from refract.library.queries.numbered import (
    PageFilter,
    find_page,
    load_item_tags,
    load_pages_after,
    load_saved_pages,
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

_CHOICES = {"true": True, "false": False}
_READ_FROM_PAGE = ("description", "author", "publisher", "datePublished", "dateModified")


async def list_bookmarks(request: DialectRequest) -> Response:
    query = request.query_params
    return await list_matching(
        request,
        PageFilter(
            request.caller.user.id,
            archived=_CHOICES.get(query.get("archived", "")),
            favorite=_CHOICES.get(query.get("favourited", "")),
            types=ALL_TYPES,
        ),
    )


async def search_bookmarks(request: DialectRequest) -> Response:
    """Return the bookmarks that match, newest first: there is no other relevance."""
    found = parse_karakeep_search(request.query_params.get("q", ""))
    return await list_matching(
        request,
        PageFilter(
            request.caller.user.id,
            found.words,
            archived=found.archived,
            favorite=found.favorite,
            types=found.types,
        ),
    )


async def list_matching(request: DialectRequest, filters: PageFilter) -> Response:
    """Return a page of bookmarks and the cursor of the next one."""
    rt, limit = request.rt, read_limit(request)
    filters = replace(filters, descending=request.query_params.get("sortOrder") != "asc")
    cursors, binding = CursorCodec(rt.secret), ["karakeep", filters]
    cursor = request.query_params.get("cursor")
    position = cursors.decode(binding, cursor) if cursor else None
    after = (position[0], position[1]) if position else None
    async with rt.db.read() as session:
        rows = await load_pages_after(session, filters, after, limit + 1)
    page = cursors.build_page(binding, rows, limit, lambda item: [item.created_at, item.id])
    with_html = request.query_params.get("includeContent") == "true"
    shown = await _show_all(request, page.items, with_html=with_html)
    return make_json_response({"bookmarks": shown, "nextCursor": page.next_cursor})


async def check_url(request: DialectRequest) -> Response:
    digest = recognize_text(request.query_params.get("url", "")).url_digest
    item = None
    if digest is not None:
        async with request.rt.db.read() as session:
            item = await find_page(session, request.caller.user.id, digest)
    return make_json_response({"bookmarkId": None if item is None else str(item.id)})


async def create_bookmark(request: DialectRequest) -> Response:
    """Save a link or a text: 201, or 200 with the bookmark that the link has already."""
    given = await request.parse_fields(KarakeepBookmarkCreate)
    text, digest = _parse_text(given)
    changes = _build_patch(given)
    rt, caller = request.rt, request.caller
    async with rt.db.write() as session:
        item = None if digest is None else await find_page(session, caller.user.id, digest)
        known_id = None if item is None else item.id
        if item is None:
            described = bool(given.title) or digest is None
            new = ItemCreate(text=text, enrich=not described)
            item = (await service.capture_item(session, rt, caller.user, new)).item
            await change_item(request, session, item.id, changes, given)
        item_id = item.id
    shown = await show_bookmark(request, item_id)
    return make_json_response(
        {**shown, "alreadyExists": known_id is not None}, 201 if known_id is None else 200
    )


async def read_bookmark(request: DialectRequest) -> Response:
    with_html = request.query_params.get("includeContent") == "true"
    shown = await show_bookmark(request, await find_item_id(request), with_html=with_html)
    return make_json_response(shown)


async def change_bookmark(request: DialectRequest) -> Response:
    """Change what is given. What is read from the page can't be changed."""
    given, rt = await request.parse_fields(KarakeepBookmarkFields), request.rt
    item_id, changes = await find_item_id(request), _build_patch(given)
    async with rt.db.write() as session:
        if given.url:
            digest = _require_page(given.url)
            other = await find_page(session, request.caller.user.id, digest)
            if other is not None and other.id != item_id:
                raise InvalidKarakeepField("url", Phrase("You have saved this page already."))
        await change_item(request, session, item_id, changes, given)
    return make_json_response(await show_bookmark(request, item_id))


async def delete_bookmark(request: DialectRequest) -> Response:
    """Discard an item. In the web app that can be undone."""
    item_id, rt = await find_item_id(request), request.rt
    async with rt.db.write() as session:
        locked = await service.lock_item(session, rt, request.caller.user.id, item_id)
        await service.discard_item(locked)
    return Response(status_code=204)


async def list_bookmark_lists(request: DialectRequest) -> Response:
    """List nothing, for a bookmark of the caller's."""
    await find_item_id(request)
    return make_json_response({"lists": []})


async def list_bookmark_highlights(request: DialectRequest) -> Response:
    """List nothing, for a bookmark of the caller's."""
    await find_item_id(request)
    return make_json_response({"highlights": []})


async def find_item_id(request: DialectRequest) -> int:
    """Return the id of the bookmark in the path. Raises `KarakeepBookmarkNotFound`."""
    async with request.rt.db.read() as session:
        try:
            item = await get_own_item(
                session, request.caller.user.id, get_object_id(request, "bookmark")
            )
        except NotFound as exc:
            raise KarakeepBookmarkNotFound from exc
    if item.status == ItemStatus.DISCARDED:
        raise KarakeepBookmarkNotFound
    return item.id


async def change_item(
    request: DialectRequest,
    session: WriteSession,
    item_id: int,
    changes: ItemPatch,
    given: KarakeepBookmarkFields | None = None,
) -> LockedItem:
    """Change an item of the caller's, within a transaction."""
    rt = request.rt
    locked = await service.lock_item(session, rt, request.caller.user.id, item_id)
    if changes.model_fields_set:
        await service.edit_item(locked, changes)
    if given is not None and given.createdAt:
        moment = parse_time("createdAt", given.createdAt)
        locked.item.created_at = min(moment, rt.clock.now())
    await session.flush()
    return locked


async def show_bookmark(
    request: DialectRequest, item_id: int, *, with_html: bool = False
) -> dict[str, Any]:
    """Return an item of the caller's. Raises `KarakeepBookmarkNotFound`."""
    async with request.rt.db.read() as session:
        try:
            item = await get_own_item(session, request.caller.user.id, item_id)
        except ItemNotFound as exc:
            raise KarakeepBookmarkNotFound from exc
    return (await _show_all(request, [item], with_html=with_html))[0]


async def _show_all(
    request: DialectRequest, items: Sequence[Item], *, with_html: bool
) -> list[dict[str, Any]]:
    ids = [item.id for item in items]
    async with request.rt.db.read() as session:
        tags = await load_item_tags(session, ids)
        pages = await load_saved_pages(session, ids, with_html=with_html)
    return [
        build_bookmark(item, tags[item.id], pages.get(item.id), with_html=with_html)
        for item in items
    ]


def _parse_text(given: KarakeepBookmarkCreate) -> tuple[str, str | None]:
    """Return the text to save, and the digest of its URL if it is one."""
    match given.type:
        case "asset":
            raise AssetsNotSupported
        case "link":
            if not given.url:
                raise InvalidKarakeepField("url", Phrase("This field is required."))
            return given.url.strip(), _require_page(given.url)
        case "text":
            if not given.text or not given.text.strip():
                raise InvalidKarakeepField("text", Phrase("This field is required."))
            return given.text, recognize_text(given.text).url_digest


def _require_page(url: str) -> str:
    """Return the digest of a URL. Raises `InvalidKarakeepField`."""
    digest = recognize_text(url).url_digest
    if digest is None:
        raise InvalidKarakeepField("url", Phrase("Enter a valid URL."))
    return digest


def _build_patch(given: KarakeepBookmarkFields) -> ItemPatch:
    """Return the fields that were given, in our words. Titles are shortened to fit."""
    for field in _READ_FROM_PAGE:
        if getattr(given, field) is not None:
            raise InvalidKarakeepField(field, Phrase("This is read from the page."))
    fields: dict[str, Any] = {}
    for field, ours, most in (
        ("summary", "summary", MAX_SUMMARY_LENGTH),
        ("note", "notes", MAX_NOTES_LENGTH),
    ):
        text = getattr(given, field)
        if text is not None and len(text.strip()) > most:
            raise InvalidKarakeepField(
                field, Phrase("Enter at most {limit} characters.", limit=most)
            )
        if field in given.model_fields_set:
            fields[ours] = text
    if "title" in given.model_fields_set:
        fields["title"] = given.title and given.title.strip()[:MAX_TITLE_LENGTH]
    for field, ours in (("archived", "archived"), ("favourited", "favorite")):
        if getattr(given, field) is not None:
            fields[ours] = getattr(given, field)
    is_change = not isinstance(given, KarakeepBookmarkCreate)
    if is_change and (text := given.url or given.text):
        fields["text"] = text.strip()
    return ItemPatch(**fields)
