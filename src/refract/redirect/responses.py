"""Responses of the slow path other than pages."""

import hmac
import re
from datetime import datetime
from email.utils import formatdate
from html import escape
from http import HTTPStatus
from typing import Final

from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from refract.core.clock import format_utc
from refract.core.extraction.tasks import TaskRefused
from refract.core.runtime import Runtime
from refract.core.schemas import list_schema_errors
from refract.core.secrets import Secret
from refract.links.enums import FlagReason
from refract.links.preview_cards import PreviewCard
from refract.links.qr_styles import PLAIN_STYLE, QrStyle, format_style
from refract.redirect import qr
from refract.redirect.errors import InvalidQrFormat, InvalidQrStyle, QrSizeTooSmall, UrlTooLongForQr
from refract.redirect.resolver import RedirectTarget
from refract.web.i18n import LazyText, lazy_gettext
from refract.web.render_cache import RenderCache


class ShortLinkRedirect:
    """A redirect as ASGI response."""

    def __init__(
        self, status: int, href: str, *, cacheable: bool = True, noindex: bool = False
    ) -> None:
        location = href.encode("ascii")
        headers = build_redirect_headers(status, location, cacheable=cacheable, noindex=noindex)
        self._start: Message = {"type": "http.response.start", "status": status, "headers": headers}

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send(self._start)
        await send({"type": "http.response.body", "body": b""})


_CARD_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Vary": "User-Agent",
    "X-Robots-Tag": "noindex",
}


def build_card_page(card: PreviewCard, name: str, url: str) -> Response:
    """Return the page of a preview card for crawlers. It has nothing but what the card says."""
    title = card.title or name
    tags = {
        "og:type": "website",
        "og:url": url,
        "og:title": title,
        "og:description": card.description,
        "og:image": card.image_url,
        "twitter:card": "summary_large_image" if card.image_url else "summary",
        "description": card.description,
        "robots": "noindex",
    }
    metas = "".join(
        f'<meta {"property" if name.startswith("og:") else "name"}="{name}"'
        f' content="{escape(value)}">'
        for name, value in tags.items()
        if value
    )
    page = (
        f'<!doctype html><meta charset="utf-8"><title>{escape(title)}</title>{metas}'
        f"<h1>{escape(title)}</h1><p>{escape(card.description or '')}</p>"
    )
    return HTMLResponse(page, headers=_CARD_HEADERS)


def build_json_preview(
    found: RedirectTarget, short_url: str, href: str, continue_url: str | None = None
) -> Response:
    """Return the preview as JSON. `continue_url` opens a flagged link."""
    facts = {
        "name": found.name,
        "short_url": short_url,
        "destination": href,
        "redirect_status": found.redirect_status,
        "title": found.title,
        "flag_reason": found.flag_reason,
        **({"continue_url": continue_url} if continue_url else {}),
        "created_at": format_utc(found.created_at) if found.created_at else None,
    }
    return JSONResponse(facts, headers={"Cache-Control": "no-store"})


def read_qr_style(params: QueryParams, usual: QrStyle) -> QrStyle:
    """Return the style with what a query changes of it. Raises `InvalidQrStyle`."""
    # Loads the schemas of pages, which the process that only redirects never needs.
    from refract.links.schemas import QrStyleIn  # noqa: PLC0415

    changes = {name: params[name] for name in QrStyleIn.model_fields if name in params}
    if not changes:
        return usual
    try:
        return QrStyleIn.from_style(usual, changes).to_style()
    except ValidationError as exc:
        errors = list_schema_errors(exc)
        raise InvalidQrStyle(reason=errors[0].message, errors=errors) from exc


async def render_qr_image(
    rt: Runtime, text: str, network: str, params: QueryParams, usual: QrStyle = PLAIN_STYLE
) -> Response:
    """Return the QR code of a short URL: SVG, or PNG of the requested size.

    `usual` is the style for what the query leaves open.
    """
    kind, size = params.get("format", "svg").lower(), params.get("size", "512")
    if kind not in ("svg", "png") or not (
        size.isascii() and size.isdigit() and qr.MIN_SIZE <= int(size[:9]) <= qr.MAX_SIZE
    ):
        raise InvalidQrFormat(minimum=qr.MIN_SIZE, maximum=qr.MAX_SIZE)
    if len(text) > qr.MAX_TEXT:
        raise UrlTooLongForQr
    style = read_qr_style(params, usual)
    styled = {"style": format_style(style)} if style != PLAIN_STYLE else {}
    renders = rt.singleton(RenderCache)
    if kind == "svg":
        task = qr.DRAW_STYLED_SVG if styled else qr.DRAW_SVG
        return Response(
            await renders.render(task, text, network, **styled), media_type="image/svg+xml"
        )
    task = qr.DRAW_STYLED_PNG if styled else qr.DRAW_PNG
    try:
        return Response(
            await renders.render(task, text, network, size=int(size), **styled),
            media_type="image/png",
        )
    except TaskRefused as exc:
        raise QrSizeTooSmall(minimum=exc.details["minimum"]) from exc


# Redirects as bytes: pure, and the same for the fast lane and ASGI.

REDIRECT_STATUSES: Final = (301, 302, 307, 308)
_BROWSER_CACHEABLE = frozenset({301, 308})
_match_visible = re.compile(rb"[!-~]+").fullmatch

# The referrer policy is the default of browsers. It decides what the destination learns about the
# page with the link; a stricter one would deprive it of its referrer.
_COMMON_HEADERS: Final = (
    (b"content-length", b"0"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"strict-origin-when-cross-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


def build_redirect_headers(
    status: int, location: bytes, *, cacheable: bool = True, noindex: bool = False
) -> list[tuple[bytes, bytes]]:
    """Return every header of a redirect but `Date`, which the server adds.

    Unless `cacheable`, browsers do not cache it, not even a 301 or 308. With `noindex`, it asks
    search engines not to list the URL.
    """
    own = _build_own_headers(status, location, cacheable=cacheable, noindex=noindex)
    return [*own, *_COMMON_HEADERS]


def build_head(status: int, location: bytes, *, noindex: bool = False) -> bytes:
    """Return the part of a redirect that is cached per link. `build_tail` returns the rest.

    The location must be a serialized URL: control characters and spaces in it are rejected.
    """
    phrase = HTTPStatus(status).phrase.encode()
    return b"HTTP/1.1 %d %b\r\n" % (status, phrase) + _encode_headers(
        _build_own_headers(status, location, noindex=noindex)
    )


def parse_head(head: bytes) -> tuple[int, str]:
    """Return status and location of the result of `build_head`."""
    line, location, _ = head.split(b"\r\n", 2)
    return int(line[9:12]), location.removeprefix(b"location: ").decode("ascii")


def build_tail(at: float) -> bytes:
    """Return the headers that all redirects of a second share, with the blank line."""
    return (
        _encode_headers((*_COMMON_HEADERS, (b"date", formatdate(at, usegmt=True).encode())))
        + b"\r\n"
    )


def render_redirect(status: int, location: bytes, at: float) -> bytes:
    """Return a whole redirect response."""
    return build_head(status, location) + build_tail(at)


def _build_own_headers(
    status: int, location: bytes, *, cacheable: bool = True, noindex: bool = False
) -> tuple[tuple[bytes, bytes], ...]:
    if status not in REDIRECT_STATUSES:
        raise ValueError(f"{status} is not one of the redirects {REDIRECT_STATUSES}")
    if not _match_visible(location):
        raise ValueError("a location is a serialised URL: visible ASCII alone")
    kept = (
        b"private, max-age=30"
        if cacheable and status in _BROWSER_CACHEABLE
        else b"private, no-store"
    )
    own = (b"location", location), (b"cache-control", kept)
    return (*own, (b"x-robots-tag", b"noindex")) if noindex else own


def _encode_headers(pairs: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join(b"%b: %b\r\n" % pair for pair in pairs)


# Confirmations of visitors for flagged links: signed, and valid for a few minutes.

CONFIRM_PARAMETER: Final = "continue"
CONFIRMATION_SECONDS: Final = 600
"""Minimum validity of a confirmation; the maximum is twice as long."""

_CONFIRM_PURPOSE: Final = "continue"
_CONFIRM_PATTERN: Final = re.compile(rf"{CONFIRM_PARAMETER}=([0-9a-f]{{24}})(?:&(.*))?", re.DOTALL)
_FLAG_EXPLANATIONS: Final = {
    FlagReason.UNCHECKED: lazy_gettext(
        "This URL hasn’t been checked yet. Open it only if you trust it."
    ),
    FlagReason.LOOKALIKE: lazy_gettext(
        "This URL mixes letters from several alphabets and may imitate another site."
        " Read it carefully."
    ),
    FlagReason.DANGEROUS: lazy_gettext(
        "This URL is listed as dangerous. Go back unless you’re sure."
    ),
    FlagReason.BLOCKED: lazy_gettext(
        "This URL is on this server’s block list. Go back unless you’re sure."
    ),
}


def explain_flag(reason: str) -> LazyText:
    """Return the warning shown to a visitor."""
    return _FLAG_EXPLANATIONS[FlagReason(reason)]


def split_confirmation(query: str) -> tuple[str, str]:
    """Return the confirmation at the start of a query, and the rest. Either may be empty."""
    found = _CONFIRM_PATTERN.fullmatch(query)
    return (found[1], found[2] or "") if found else ("", query)


def sign_confirmation(secret: Secret, found: RedirectTarget, network: str, now: datetime) -> str:
    """Return a confirmation for this version of a link, valid only for this network."""
    return _sign_slot(secret, found, network, int(now.timestamp()) // CONFIRMATION_SECONDS)


def is_confirmed(
    secret: Secret, found: RedirectTarget, network: str, now: datetime, confirmation: str
) -> bool:
    slot = int(now.timestamp()) // CONFIRMATION_SECONDS
    return any(
        hmac.compare_digest(_sign_slot(secret, found, network, known), confirmation)
        for known in (slot, slot - 1)
    )


def _sign_slot(secret: Secret, found: RedirectTarget, network: str, slot: int) -> str:
    return secret.sign(
        _CONFIRM_PURPOSE,
        f"{found.kind} {found.id} {found.version} {network} {slot}".encode(),
        size=12,
    ).hex()
