"""How a user arranges the table of links: density, columns and saved views, kept as preferences."""

from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.identity.dependencies import WriteCaller
from refract.identity.users import save_preferences
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, lazy_gettext
from refract.web.return_path import get_referring_path
from refract.web.tables import Density, read_density

router = page_router()
MAX_VIEWS: Final = 30
MAX_VIEW_NAME: Final = 40
COLUMN_LABELS: Final = {
    "tags": lazy_gettext("Tags"),
    "clicks": lazy_gettext("Clicks"),
    "last_click": lazy_gettext("Last click"),
    "updated": lazy_gettext("Updated"),
    "created": lazy_gettext("Created"),
}
DEFAULT_COLUMNS: Final = ("tags", "clicks", "created")
VIEW_KEYS: Final = ("q", "status", "tag", "visibility", "team", "since", "until", "owner", "sort")
ViewName = Annotated[str, Form(max_length=200)]
ViewQuery = Annotated[str, Form(max_length=2000)]


def read_table_options(actor: Caller) -> tuple[str, list[str]]:
    """Return the density and the columns of the user's table."""
    kept = actor.user.preferences.get("link_table") or {}
    columns = kept.get("columns")
    return (
        read_density(kept.get("density")),
        [
            name
            for name in COLUMN_LABELS
            if name in (DEFAULT_COLUMNS if columns is None else columns)
        ],
    )


def list_views(actor: Caller) -> list[dict[str, str]]:
    """Return the user's saved views by name: `name` and the `query` of the table."""
    kept: list[dict[str, str]] = actor.user.preferences.get("link_views") or []
    return kept


@router.post("/app/links/display")
async def change_display(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    density: Annotated[Density, Form()] = "compact",
    column: Annotated[list[str] | None, Form(max_length=20)] = None,
) -> Response:
    """Remember density and columns."""
    table = {
        "density": density,
        "columns": [name for name in column or () if name in COLUMN_LABELS],
    }
    async with rt.db.write() as session:
        await save_preferences(session, actor.user.id, {"link_table": table})
    return RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)


@router.post("/app/links/views")
async def save_view(
    request: Request, actor: WriteCaller, rt: Rt, name: ViewName = "", query: ViewQuery = ""
) -> Response:
    """Save the filters of the table under a name, or replace the view of that name."""
    clean = " ".join(name.split())[:MAX_VIEW_NAME]
    if not clean:
        response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
        flash.add(response, rt, gettext("Enter a name for the view."), kind="wrong")
        return response
    kept = _clean_query(query)
    others = [view for view in list_views(actor) if view["name"] != clean]
    if len(others) >= MAX_VIEWS:
        response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
        flash.add(response, rt, gettext("Delete a view first: there are 30."), kind="wrong")
        return response
    await _store(rt, actor, [*others, {"name": clean, "query": kept}])
    response = RedirectResponse(f"/app/links?{kept}", 303)
    flash.add(response, rt, gettext("Saved the view “{name}”", name=clean))
    return response


@router.post("/app/links/views/rename")
async def rename_view(
    request: Request, actor: WriteCaller, rt: Rt, name: ViewName = "", new_name: ViewName = ""
) -> Response:
    """Rename a view; one that has the new name already is replaced."""
    clean = " ".join(new_name.split())[:MAX_VIEW_NAME]
    response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
    found = next((view for view in list_views(actor) if view["name"] == name), None)
    if found is None or not clean:
        flash.add(response, rt, gettext("Enter a name for the view."), kind="wrong")
        return response
    others = [view for view in list_views(actor) if view["name"] not in (name, clean)]
    await _store(rt, actor, [*others, {**found, "name": clean}])
    flash.add(response, rt, gettext("Renamed the view to “{name}”", name=clean))
    return response


@router.post("/app/links/views/delete")
async def delete_view(
    request: Request, actor: WriteCaller, rt: Rt, name: ViewName = ""
) -> Response:
    """Delete a view. The toast can bring it back."""
    response = RedirectResponse(get_referring_path(request, rt, "/app/links"), 303)
    found = next((view for view in list_views(actor) if view["name"] == name), None)
    if found is None:
        return response
    await _store(rt, actor, [view for view in list_views(actor) if view != found])
    undo = urlencode({"name": found["name"], "query": found["query"]}, quote_via=quote)
    flash.add(
        response,
        rt,
        gettext("Deleted the view “{name}”", name=name),
        undo=f"/app/links/views/restore?{undo}",
    )
    return response


@router.post("/app/links/views/restore")
async def restore_view(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    name: Annotated[str, Query(max_length=MAX_VIEW_NAME)] = "",
    query: Annotated[str, Query(max_length=2000)] = "",
) -> Response:
    """Bring a deleted view back."""
    return await save_view(request, actor, rt, name, query)


async def _store(rt: Runtime, actor: Caller, views: list[dict[str, str]]) -> None:
    ordered: list[dict[str, Any]] = sorted(views, key=lambda view: view["name"].casefold())
    async with rt.db.write() as session:
        await save_preferences(session, actor.user.id, {"link_views": ordered})


def _clean_query(query: str) -> str:
    """Return only the filters of a query."""
    return urlencode([(key, value) for key, value in parse_qsl(query) if key in VIEW_KEYS])
