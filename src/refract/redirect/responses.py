"""Answers of the slow path that are no pages."""

from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from refract.core.extraction.tasks import TaskRefused
from refract.core.runtime import Runtime
from refract.redirect import qr
from refract.redirect.answer import headers as redirect_headers
from refract.redirect.errors import BadQrFormat, QrTooDense, QrTooLong
from refract.redirect.resolve import Found
from refract.web.renders import Renders


class Redirect:
    """The answer that all this is for."""

    def __init__(self, status: int, href: str, *, keep: bool = True) -> None:
        headers = redirect_headers(status, href.encode("ascii"), keep=keep)
        self._start: Message = {"type": "http.response.start", "status": status, "headers": headers}

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send(self._start)
        await send({"type": "http.response.body", "body": b""})


def json_preview(found: Found, short_url: str, href: str, continue_url: str | None = None) -> Response:
    """Tell a program where a link leads. `continue_url` is where a flagged one redirects."""
    facts = {
        "name": found.name,
        "short_url": short_url,
        "destination": href,
        "redirect_status": found.redirect_status,
        "title": found.title,
        "flag_reason": found.flag_reason,
        **({"continue_url": continue_url} if continue_url else {}),
        "created_at": found.created_at.isoformat().replace("+00:00", "Z") if found.created_at else None,
    }
    return JSONResponse(facts, headers={"Cache-Control": "no-store"})


def without_body(send: Send) -> Send:
    """`HEAD` is answered like `GET`, headers and all, with nothing behind them."""

    async def bare(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return bare


async def qr_image(rt: Runtime, text: str, network: str, asked: QueryParams) -> Response:
    """Draw the QR code of a short URL as it is asked for: SVG, or a PNG of some size."""
    kind, size = asked.get("format", "svg").lower(), asked.get("size", "512")
    if kind not in ("svg", "png") or not (size.isascii() and size.isdigit() and qr.LEAST <= int(size[:9]) <= qr.MOST):
        raise BadQrFormat(least=qr.LEAST, most=qr.MOST)
    if len(text) > qr.MAX_TEXT:
        raise QrTooLong
    renders = rt.part(Renders)
    if kind == "svg":
        return Response(await renders.draw(qr.DRAW_SVG, text, network), media_type="image/svg+xml")
    try:
        return Response(await renders.draw(qr.DRAW_PNG, text, network, size=int(size)), media_type="image/png")
    except TaskRefused as exc:
        raise QrTooDense(least=exc.details["least"]) from exc
