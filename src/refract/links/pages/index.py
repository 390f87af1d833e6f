"""The table of links: filters, search, sorting and bulk actions."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Form, Query, Request
from pydantic import TypeAdapter, ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, Forbidden, Invalid, NotFound
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.links import queries, service
from refract.links.dependencies import Space, to_link_caller
from refract.links.models import LinkState, Visibility
from refract.links.pages.link_rows import get_stats_source, load_rows
from refract.links.pages.steps import BULK_STEPS, STEPS, UNDOABLE_STEPS
from refract.links.queries import CLICK_SORTS, LinkFilter, LinkSort, OwnerFilter
from refract.links.schemas import LinkPatch
from refract.names.service import Namespace
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.i18n import gettext, lazy_gettext, ngettext, translate_error
from refract.web.return_path import get_referring_path

router = page_router()
PER_PAGE = 25
MAX_SELECTED = 100
SORT_LABELS = {
    LinkSort.CREATED: lazy_gettext("Newest"),
    LinkSort.UPDATED: lazy_gettext("Recently updated"),
    LinkSort.CLICKS: lazy_gettext("Most clicks"),
    LinkSort.LAST_CLICK: lazy_gettext("Recently clicked"),
}
OWNER_LABELS = {
    OwnerFilter.ME: lazy_gettext("Mine"),
    OwnerFilter.SHARED: lazy_gettext("Shared with me"),
    OwnerFilter.PUBLIC: lazy_gettext("Public"),
    OwnerFilter.ALL: lazy_gettext("All (admin)"),
}
VISIBILITY_FILTER_CHOICES = [
    ("", lazy_gettext("Any")),
    (Visibility.PUBLIC.value, lazy_gettext("Public")),
    (Visibility.UNLISTED.value, lazy_gettext("Unlisted")),
    (Visibility.SIGNED_IN.value, lazy_gettext("Signed-in")),
    (Visibility.SECURE.value, lazy_gettext("Secure")),
]
MAX_TAG_FILTERS = 10
QueryParameters = Mapping[str, str | Sequence[str] | None]
_ID_LIST = TypeAdapter(list[Id])


@router.get("/app/links")
async def links_page(  # noqa: PLR0913, PLR0917 - each filter is one
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    cursor: CursorParam = None,
    q: Annotated[str | None, Query(max_length=200)] = None,
    status: LinkState | Literal[""] | None = None,
    tag: Annotated[list[str] | None, Query(max_length=MAX_TAG_FILTERS)] = None,
    owner: OwnerFilter = OwnerFilter.ME,
    sort: LinkSort = LinkSort.CREATED,
    visibility: Visibility | Literal[""] | None = None,
) -> Response:
    """List the caller's links, newest first, or those that match, in a fixed number of queries."""
    if owner == OwnerFilter.ALL and not actor.is_admin:
        owner = OwnerFilter.ME
    if owner == OwnerFilter.PUBLIC and sort in CLICK_SORTS:
        sort = LinkSort.CREATED
    filters = LinkFilter(
        owner=owner,
        status=status or None,
        tags=tuple(name[:200] for name in tag or () if name),
        q=q or None,
        sort=sort,
        visibility=visibility or None,
    )
    next_cursor, found = await _load_page(request, rt, actor, filters, cursor)
    params = _query_params(filters)
    return render_response(
        request,
        actor,
        "links/index.html",
        page_title=gettext("Links"),
        filters=filters,
        filtered=bool(params),
        q=q or "",
        **found,
        **_build_choices(actor, owner),
        filter_url=lambda **changes: _build_url(params, changes),
        tag_url=lambda slug: _build_url(params, {"tag": _toggle_tag(filters.tags, slug)}),
        may_act=owner not in (OwnerFilter.PUBLIC, OwnerFilter.SHARED),
        next_url=_build_url(params, {"cursor": next_cursor}) if next_cursor else None,
        first_url=_build_url(params, {}) if cursor else None,
    )


async def _load_page(
    request: Request, rt: Runtime, actor: Caller, filters: LinkFilter, cursor: str | None
) -> tuple[str | None, dict[str, Any]]:
    """Return the cursor of the next page, and the rows and counts that the template shows."""
    now = rt.clock.now()
    async with rt.db.read() as session:
        page = await queries.load_links_page(
            session,
            CursorCodec(rt.secret),
            to_link_caller(actor),
            filters,
            now,
            limit=PER_PAGE,
            cursor=cursor,
        )
        has_stats = filters.owner != OwnerFilter.PUBLIC
        rows = await load_rows(session, rt, get_stats_source(request), page.items, stats=has_stats)
        states = await queries.count_states(session, actor.user.id, now)
        tags = await queries.count_tags(session, actor.user.id)
        invited = await queries.count_invitations(session, actor.user.id, now)
    return page.next_cursor, {
        "links": rows,
        "states": [
            (state.value, states[state.value])
            for state in LinkState
            if state != LinkState.ON_HOLD or states[state.value]
        ],
        "all_count": sum(count for state, count in states.items() if state != LinkState.DELETED),
        "max_counted": queries.MAX_COUNTED,
        "tags": tags,
        "invitations_waiting": invited,
    }


def _build_choices(actor: Caller, owner: OwnerFilter) -> dict[str, Any]:
    """Return the choices of the filters: `all` for administrators, no clicks of public links."""
    owners = [
        (key.value, label)
        for key, label in OWNER_LABELS.items()
        if key != OwnerFilter.ALL or actor.is_admin
    ]
    sorts = [
        (key.value, label)
        for key, label in SORT_LABELS.items()
        if owner != OwnerFilter.PUBLIC or key not in CLICK_SORTS
    ]
    return {"sorts": sorts, "owners": owners, "visibilities": VISIBILITY_FILTER_CHOICES}


def _query_params(filters: LinkFilter) -> QueryParameters:
    """Return the query parameters of a filter, without those that have their default."""
    params = {
        "q": filters.q,
        "status": filters.status,
        "tag": filters.tags,
        "visibility": filters.visibility,
        "owner": filters.owner if filters.owner != OwnerFilter.ME else None,
        "sort": filters.sort if filters.sort != LinkSort.CREATED else None,
    }
    return {name: value for name, value in params.items() if value}


def _build_url(params: QueryParameters, changes: QueryParameters) -> str:
    query = {name: value for name, value in {**params, **changes}.items() if value}
    return f"/app/links?{urlencode(query, doseq=True)}" if query else "/app/links"


def _toggle_tag(tags: Sequence[str], slug: str) -> list[str]:
    """Return the tags of a filter with one more, or without it."""
    return [tag for tag in tags if tag != slug] if slug in tags else [*tags, slug]


@router.post("/app/links/bulk")
async def apply_bulk_action(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    act: Annotated[str, Form(max_length=20)] = "",
    ids: Annotated[list[str] | None, Form(max_length=MAX_SELECTED)] = None,
    tag: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Disable, enable, delete or tag the selected links. A failure does not stop the rest."""
    chosen = _parse_ids(ids or [])
    response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
    is_complete = bool(tag.strip()) if act == "tag" else act in BULK_STEPS
    if not chosen or not is_complete:
        hint = gettext("Choose an action.") if chosen else gettext("Select at least one link.")
        flash.add(response, rt, hint, kind="note")
        return response
    async with rt.db.write() as session:
        done, failures = await _apply_action(session, rt, space, actor, act, chosen, tag)
    _flash_result(response, rt, act, done, failures)
    return response


@router.post("/app/links/undo")
async def undo_bulk_action(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    ids: Annotated[str, Query(max_length=MAX_SELECTED * 20)] = "",
) -> Response:
    """Undo the latest change of several links."""
    response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
    chosen = _parse_ids(ids.split(","))
    if chosen:
        async with rt.db.write() as session:
            done, failures = await _apply_action(session, rt, space, actor, "undo", chosen, "")
        _flash_result(response, rt, "undo", done, failures)
    return response


async def _apply_action(
    session: WriteSession,
    rt: Runtime,
    space: Namespace,
    actor: Caller,
    act: str,
    chosen: Sequence[int],
    tag: str,
) -> tuple[list[int], list[str]]:
    """Return the ids of the changed links, and the reasons of those that failed.

    Links are locked in the order of their ids, so that two callers cannot deadlock.
    """
    done, failures = [], []
    for link_id in sorted(chosen):
        try:
            if act == "tag":
                await _add_tag(session, space, actor, link_id, tag)
            else:
                await STEPS[act](session, rt, space, actor, link_id)
            done.append(link_id)
        except (Conflict, Forbidden, Invalid, NotFound) as exc:
            failures.append(translate_error(exc))
    return done, failures


async def _add_tag(
    session: WriteSession, space: Namespace, actor: Caller, link_id: int, tag: str
) -> None:
    link, _ = await queries.view_link(session, to_link_caller(actor), link_id)
    card = await queries.load_card(session, link)
    await service.edit_link(
        session, space, to_link_caller(actor), link_id, LinkPatch(tags=[*card.tags, tag.strip()])
    )


def _flash_result(
    response: Response, rt: Runtime, act: str, done: Sequence[int], failures: Sequence[str]
) -> None:
    if not done:
        flash.add(response, rt, failures[0], kind="wrong")
        return
    messages = [_format_result(act, len(done))]
    if failures:
        messages.append(
            ngettext(
                "{n} failed: {reason}", "{n} failed: {reason}", len(failures), reason=failures[0]
            )
        )
    undoable = act == "tag" or act in UNDOABLE_STEPS
    flash.add(
        response,
        rt,
        " · ".join(messages),
        undo=f"/app/links/undo?ids={','.join(map(str, done))}" if undoable else None,
    )


def _format_result(act: str, count: int) -> str:
    match act:
        case "disable":
            return ngettext("Disabled {n} link", "Disabled {n} links", count)
        case "enable":
            return ngettext("Enabled {n} link", "Enabled {n} links", count)
        case "delete":
            return ngettext(
                "Deleted {n} link. You can restore it for 24 hours.",
                "Deleted {n} links. You can restore them for 24 hours.",
                count,
            )
        case "tag":
            return ngettext("Tagged {n} link", "Tagged {n} links", count)
    return ngettext("Restored {n} link", "Restored {n} links", count)


def _parse_ids(texts: Sequence[str]) -> list[int]:
    try:
        return list(dict.fromkeys(_ID_LIST.validate_python(texts)))[:MAX_SELECTED]
    except ValidationError:
        return []
