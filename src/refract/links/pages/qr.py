"""The page of a link's QR code: its looks, live, and files to download."""

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.access import AccessRight
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.identity.users import save_preferences
from refract.links import queries, service
from refract.links.dependencies import Space, to_link_caller
from refract.links.pages.forms import read_values
from refract.links.qr_styles import MAX_MARGIN, PLAIN_STYLE, QR_PREFERENCE, QrStyle
from refract.links.queries import LinkCard
from refract.links.queries.qr_styles import load_qr_style
from refract.links.schemas import LinkPatch, QrStyleIn
from refract.names.grammar import is_kept
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, lazy_gettext
from refract.web.problems import list_field_errors

router = page_router()
_FIELDS = tuple(QrStyleIn.model_fields)
SHAPES = [("square", lazy_gettext("Squares")), ("dots", lazy_gettext("Dots"))]
CORRECTIONS = [
    ("L", lazy_gettext("Low: 7% may be damaged")),
    ("M", lazy_gettext("Medium: 15%")),
    ("Q", lazy_gettext("High: 25%")),
    ("H", lazy_gettext("Highest: 30%")),
]


@router.get("/app/links/{link_id}/qr")
async def qr_page(link_id: Id, request: Request, actor: ReadCaller, rt: Rt) -> Response:
    """Show the QR code of a link, with what the query changes of its looks."""
    return await _render_qr_page(request, actor, rt, link_id, dict(request.query_params))


@router.post("/app/links/{link_id}/qr")
async def save_qr_style(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, space: Space
) -> Response:
    """Save the looks of a link's QR code, or make them the caller's default, or reset them."""
    values = read_values(await request.form())
    act = values.pop("act", "save")
    caller = to_link_caller(actor)
    try:
        style = None if act == "reset" else QrStyleIn.from_style(PLAIN_STYLE, _pick_fields(values))
        async with rt.db.write() as session:
            changes = LinkPatch(qr_style=None if act == "default" else style)
            await service.edit_link(session, space, caller, link_id, changes)
            if act == "default" and style is not None:
                chosen = {QR_PREFERENCE: style.to_style().to_json()}
                await save_preferences(session, actor.user.id, chosen)
    except ValidationError:
        return await _render_qr_page(request, actor, rt, link_id, values, status=422)
    message = {
        "default": gettext("Saved as your default"),
        "reset": gettext("The QR code looks like your default again"),
    }.get(act, gettext("Saved the QR code"))
    response = RedirectResponse(f"/app/links/{link_id}/qr", 303)
    flash.add(response, rt, message, undo=f"/app/links/{link_id}/undo" if act == "save" else None)
    return response


def _pick_fields(values: dict[str, str]) -> dict[str, Any]:
    """Return the fields of the style. Browsers leave out an empty box."""
    given: dict[str, Any] = {name: values[name] for name in _FIELDS if name in values}
    return given | ({"logo": given.get("logo") in ("1", "true")} if given else {})


async def _render_qr_page(
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    values: dict[str, str],
    *,
    status: int = 200,
) -> Response:
    async with rt.db.read() as session:
        link, _ = await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.EDIT)
        card = await queries.load_card(session, link)
        kept = await load_qr_style(session, link_id)
    errors: dict[str, str] = {}
    style = kept
    try:
        style = QrStyleIn.from_style(kept, _pick_fields(values)).to_style()
    except ValidationError as exc:
        errors = {error.field: error.message for error in list_field_errors(exc.errors())}
    out = card.to_schema(rt.settings.public_url, rt.clock.now())
    shown = asdict(style) | {name: values[name] for name in errors if name in values}
    return render_response(
        request,
        actor,
        "links/qr.html",
        status=status,
        page_title=gettext("QR code of /{name}", name=card.name),
        link=out,
        name=card.name,
        image_url=build_image_url(card, style),
        address=urlencode(_describe_address(card)),
        values=shown,
        errors=errors,
        shapes=SHAPES,
        corrections=CORRECTIONS,
        max_margin=MAX_MARGIN,
        has_own=link.qr_style is not None,
    )


def build_image_url(card: LinkCard, style: QrStyle) -> str:
    """Return the URL of the code in a style, on the host of the pages."""
    looks = {name: str(value).lower() for name, value in asdict(style).items()}
    looks |= {"correction": style.correction}
    return f"/app/qr?{urlencode(_describe_address(card) | looks)}"


def _describe_address(card: LinkCard) -> dict[str, str]:
    exact = {"exact": "true"} if is_kept(card.text) else {}
    return {"name": card.name, "domain": card.link.domain or ""} | exact
