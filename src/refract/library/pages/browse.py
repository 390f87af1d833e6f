"""The library as a list: search, filters with counts, and the capture box."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Invalid
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.library import service
from refract.library.models import ItemStatus, ItemType
from refract.library.pages.messages import translate_validation_error
from refract.library.queries import items as queries_items
from refract.library.queries.browse import LibraryFilter, count_facets, list_items
from refract.library.queries.serializers import serialize_items
from refract.library.recognition import split_paste
from refract.library.schemas import ItemCreate
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.i18n import gettext, ngettext, translate_error
from refract.web.return_path import get_referring_path
from refract.web.routing import large_body

router = page_router()
PAGE_SIZE = 25
SearchText = Annotated[str | None, Query(max_length=200)]


@router.get("/app/library")
async def library_page(  # noqa: PLR0913, PLR0917 - one per filter
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    cursor: CursorParam = None,
    q: SearchText = None,
    tag: SearchText = None,
    type: Annotated[str, Query(max_length=20)] = "",  # noqa: A002 - name of the filter
    untagged: bool = False,
    discarded: bool = False,
) -> Response:
    """Show saved items, newest first or by relevance, or the discarded ones."""
    kind = ItemType(type) if type in list(ItemType) else None
    state = ItemStatus.DISCARDED if discarded else ItemStatus.ARCHIVED
    chosen = LibraryFilter(
        actor.user.id, state, type=kind, tags=(tag,) if tag else (), untagged=untagged, q=q or None
    )
    return await _render_page(request, actor, rt, chosen, cursor)


@router.post("/app/items")
@large_body
async def capture_items(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    text: Annotated[str, Form(max_length=100_000)] = "",
    plain: Annotated[str, Form()] = "",
) -> Response:
    """Save a note, a URL, or a URL per line."""
    try:
        texts = split_paste(text) or [text]
        async with rt.db.write() as session:
            for line in texts:
                await service.capture_item(
                    session, rt, actor.user, ItemCreate(text=line, enrich=not plain)
                )
            waiting = await queries_items.count_pending_items(session, actor.user.id)
    except (ValidationError, Invalid) as exc:
        message = (
            translate_error(exc)
            if isinstance(exc, Invalid)
            else translate_validation_error(exc.errors()[0])
        )
        return await _render_page(
            request,
            actor,
            rt,
            LibraryFilter(actor.user.id),
            None,
            status=422,
            values={"text": text},
            errors={"text": message},
        )
    message = (
        ngettext("Saved {n} item", "Saved {n} items", len(texts))
        if plain
        else ngettext("Saved. {n} item to review", "Saved. {n} items to review", waiting)
    )
    response = RedirectResponse(_find_way_back(request, rt), 303)
    flash.add(response, rt, message)
    return response


def _find_way_back(request: Request, rt: Runtime) -> str:
    """Return the page that something was saved from, which a share sheet isn’t."""
    path = get_referring_path(request, rt, "/app/library")
    return "/app/library" if path.startswith("/app/share") else path


async def _render_page(
    request: Request,
    actor: Caller,
    rt: Runtime,
    chosen: LibraryFilter,
    cursor: str | None,
    *,
    status: int = 200,
    **more: Any,
) -> Response:
    async with rt.db.read() as session:
        page = await list_items(
            session, CursorCodec(rt.secret), chosen, limit=PAGE_SIZE, cursor=cursor
        )
        items = await serialize_items(session, page.items)
        facets = await count_facets(session, chosen)
        waiting = await queries_items.count_pending_items(session, actor.user.id)
    tag = chosen.tags[0] if chosen.tags else None
    kind = chosen.type.value if chosen.type else None
    discarded = chosen.state is ItemStatus.DISCARDED
    query = {
        "q": chosen.q,
        "tag": tag,
        "type": kind,
        "untagged": "true" if chosen.untagged else None,
        "discarded": "true" if discarded else None,
    }
    return render_response(
        request,
        actor,
        "library/index.html",
        status=status,
        page_title=gettext("Library"),
        items=items,
        facets=facets,
        tag=tag,
        kind=kind or "",
        untagged=chosen.untagged,
        discarded=discarded,
        q=chosen.q or "",
        filtered=any(query.values()),
        approximate=page.approximate,
        waiting=waiting,
        review_waiting=waiting,
        address=lambda **changes: _build_url(query, changes),
        next_url=_build_url(query, {"cursor": page.next_cursor}) if page.next_cursor else None,
        first_url=_build_url(query, {}) if cursor else None,
        **more,
    )


def _build_url(query: dict[str, str | None], changes: dict[str, str | None]) -> str:
    given = {name: value for name, value in {**query, **changes}.items() if value}
    return f"/app/library?{urlencode(given)}" if given else "/app/library"
