"""The library as a list: search, filters with counts, and the capture box."""

from functools import partial
from typing import Annotated, Any

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
from refract.library.queries.browse import (
    LibraryFacets,
    LibraryFilter,
    LibrarySort,
    LibraryView,
    count_facets,
    list_items,
)
from refract.library.queries.serializers import serialize_items
from refract.library.recognition import split_paste
from refract.library.schemas import ItemCreate
from refract.library.search import parse_terms
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.i18n import gettext, lazy_gettext, ngettext, translate_error
from refract.web.return_path import get_referring_path
from refract.web.routing import large_body
from refract.web.tables import DENSITY_LABELS, build_filter_url, read_density, toggle_value

router = page_router()
PAGE_SIZE = 25
MAX_TAG_FILTERS = 10
SORT_LABELS = {
    LibrarySort.NEWEST: lazy_gettext("Newest"),
    LibrarySort.OLDEST: lazy_gettext("Oldest"),
}
CapturedText = Annotated[str, Form(max_length=100_000)]
SearchText = Annotated[str | None, Query(max_length=200)]


@router.get("/app/library")
async def library_page(  # noqa: PLR0913, PLR0917 - one per filter
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    cursor: CursorParam = None,
    q: SearchText = None,
    tag: Annotated[list[str] | None, Query(max_length=MAX_TAG_FILTERS)] = None,
    type: Annotated[str, Query(max_length=20)] = "",  # noqa: A002 - name of the filter
    untagged: bool = False,
    discarded: bool = False,
    view: Annotated[str, Query(max_length=20)] = "",
    sort: LibrarySort = LibrarySort.NEWEST,
) -> Response:
    """Show saved items, newest first or by relevance; or one view of them; or the discarded."""
    kind = ItemType(type) if type in list(ItemType) else None
    state = ItemStatus.DISCARDED if discarded else ItemStatus.ARCHIVED
    chosen = LibraryFilter(
        actor.user.id,
        state,
        type=kind,
        tags=tuple(dict.fromkeys(name.strip()[:200] for name in tag or () if name.strip())),
        untagged=untagged,
        q=q or None,
        sort=sort,
    )
    shown = LibraryView(view) if view in list(LibraryView) and not discarded else None
    return await _render_page(request, actor, rt, chosen, cursor, view=shown)


@router.post("/app/items")
@large_body
async def capture_items(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    text: CapturedText = "",
    q: CapturedText = "",
    plain: Annotated[str, Form()] = "",
) -> Response:
    """Save a note, a URL, or a URL per line. The box of the library also searches, by `q`."""
    text = text or q
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
            typed=text,
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
    """Return the page that something was saved from.

    Not a share sheet, and not the search for what was typed.
    """
    path = get_referring_path(request, rt, "/app/library")
    return "/app/library" if path.startswith(("/app/share", "/app/library?")) else path


def _describe_display(actor: Caller, chosen: LibraryFilter) -> dict[str, Any]:
    """Return the order and the density of the rows, each with the choices."""
    return {
        "sort": chosen.sort,
        "sorts": SORT_LABELS,
        "density": read_density(actor.user.preferences.get("library_density")),
        "densities": DENSITY_LABELS,
    }


async def _render_page(
    request: Request,
    actor: Caller,
    rt: Runtime,
    chosen: LibraryFilter,
    cursor: str | None,
    *,
    view: LibraryView | None = None,
    status: int = 200,
    **more: Any,
) -> Response:
    view = view or LibraryView.LIBRARY
    chosen = chosen.with_view(view)
    async with rt.db.read() as session:
        page = await list_items(
            session, CursorCodec(rt.secret), chosen, limit=PAGE_SIZE, cursor=cursor
        )
        items = await serialize_items(session, page.items)
        facets = await count_facets(session, chosen)
        waiting = await queries_items.count_pending_items(session, actor.user.id)
    kind = chosen.type.value if chosen.type else None
    discarded = chosen.state is ItemStatus.DISCARDED
    filters = _build_parameters(chosen, view)
    return render_response(
        request,
        actor,
        "library/index.html",
        status=status,
        page_title=gettext("Library"),
        items=items,
        facets=facets,
        tags=_list_tag_choices(facets),
        chosen_tags=chosen.tags,
        kind=kind or "",
        untagged=chosen.untagged,
        discarded=discarded,
        view=view,
        q=chosen.q or "",
        typed=more.pop("typed", chosen.q or ""),
        words=parse_terms(chosen.q or "").words,
        filters=filters,
        filtered=bool(filters.keys() - {"sort", "view"}),
        **_describe_display(actor, chosen),
        approximate=page.approximate,
        waiting=waiting,
        review_waiting=waiting,
        first_url=build_filter_url("/app/library", filters, {}) if cursor else None,
        **_build_urls(chosen, filters, page.next_cursor),
        **more,
    )


def _build_urls(
    chosen: LibraryFilter, filters: dict[str, Any], next_cursor: str | None
) -> dict[str, Any]:
    """Return the URLs of the page with another filter, tag or part."""
    address = partial(build_filter_url, "/app/library", filters)
    return {
        "address": lambda **changes: address(changes),
        "tag_url": lambda name: address({"tag": toggle_value(chosen.tags, name)}),
        "next_url": address({"cursor": next_cursor}) if next_cursor else None,
    }


def _build_parameters(chosen: LibraryFilter, view: LibraryView) -> dict[str, Any]:
    """Return the parameters of the URL with this filter."""
    query = {
        "q": chosen.q,
        "tag": chosen.tags,
        "type": chosen.type.value if chosen.type else None,
        "untagged": "true" if chosen.untagged else None,
        "view": view if view is not LibraryView.LIBRARY else None,
        "discarded": "true" if chosen.state is ItemStatus.DISCARDED else None,
        "sort": chosen.sort if chosen.sort != LibrarySort.NEWEST else None,
    }
    return {name: value for name, value in query.items() if value}


def _list_tag_choices(facets: LibraryFacets) -> list[dict[str, Any]]:
    """Return the tags of the menu, the most used first."""
    return [
        {"slug": tag.name, "name": tag.name, "color": tag.color, "links": number}
        for tag, number in facets.tags
    ]
