"""Middleware of every response: request ids, security headers, body limits, error handling."""

import secrets
from collections.abc import Iterable
from time import perf_counter

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.limits.errors import TooManyOpenRequests
from refract.limits.network_shares import NetworkShare
from refract.web.hosts import create_accepted_hosts
from refract.web.networks import open_share
from refract.web.problems import (
    BodyTooLarge,
    ClientDisconnected,
    InternalError,
    MalformedUrl,
    make_problem_response,
)

RawHeaders = list[tuple[bytes, bytes]]

COMMON_HEADERS: dict[bytes, bytes] = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"strict-origin-when-cross-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": (
        b"camera=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()"
    ),
}
PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src"
    b" 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none';"
    b" base-uri 'none'"
)
FRAMING_PAGE_HEADERS: dict[str, str] = {
    "Content-Security-Policy": PAGE_POLICY.decode() + "; frame-src 'self'",
    "X-Frame-Options": "DENY",
}
"""Headers of a page that shows another of our pages in a frame."""
FRAMED_PAGE_HEADERS: dict[str, str] = {
    "Content-Security-Policy": PAGE_POLICY.replace(
        b"frame-ancestors 'none'", b"frame-ancestors 'self'"
    ).decode(),
}
"""Headers of a page that is shown in a frame of another of our pages."""
EMBEDDED_PAGE_HEADERS: dict[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; form-action 'none';"
        " frame-ancestors *; base-uri 'none'"
    ),
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Robots-Tag": "noindex",
}
"""Headers of a page that other sites may show in a frame. It has no scripts, forms or cookies."""
PAGE_HEADERS: dict[bytes, bytes] = {
    b"content-security-policy": PAGE_POLICY,
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}
PLAIN_HEADERS: dict[bytes, bytes] = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"x-frame-options": b"DENY",
    b"cache-control": b"no-store",
}


class HeadOnlySend:
    """Sends the head of the response to a GET and ends it: a stream need not be read to its end."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._send(message)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def iter_security_headers(content_type: bytes, *, https: bool) -> Iterable[tuple[bytes, bytes]]:
    """Yield the headers of a class of response. A response may set them itself."""
    yield from COMMON_HEADERS.items()
    yield from (PAGE_HEADERS if content_type.startswith(b"text/html") else PLAIN_HEADERS).items()
    if https:
        yield b"strict-transport-security", b"max-age=31536000"


class RequestMiddleware:
    """The outermost middleware of pages, API and redirects.

    Redirects have their own headers and no request id.
    """

    def __init__(self, app: ASGIApp, rt: Runtime) -> None:
        self.is_closing = False
        """Set before the process stops: every later response closes its connection."""
        self._app = app
        self._https = rt.settings.https
        self._max_body = rt.settings.max_body_bytes
        self._hosts = rt.singleton(create_accepted_hosts)
        self._rt = rt
        self._metrics = rt.metrics
        self._log = structlog.get_logger("refract.http")
        self._requests = rt.metrics.counter(
            "refract_http_requests",
            "Requests answered outside the redirect lane",
            ("method", "status"),
        )
        self._seconds = rt.metrics.histogram(
            "refract_http_seconds", "Time to the first byte of an answer outside the redirect lane"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _ResponseSender(
            send, scope, request_id, https=self._https, closing=self.is_closing
        )
        began = perf_counter()
        try:
            if wrong := self._find_problem(scope):
                await make_problem_response(wrong)(scope, receive, answer)
            else:
                with open_share(scope, self._rt) as answer.share:
                    await self._app(scope, BoundedBody(receive, self._max_body), answer)
        except (BodyTooLarge, TooManyOpenRequests) as exc:
            if not answer.is_started:
                await make_problem_response(exc)(scope, receive, answer)
        except ClientDisconnect:
            answer.status = ClientDisconnected.status
        except Exception:  # noqa: BLE001 - logged; the response has no traceback
            self._log.exception("request_failed", method=scope["method"], path=scope["path"])
            if not answer.is_started:
                await make_problem_response(InternalError())(scope, receive, answer)
        finally:
            if reason := scope["state"].get("refusal") or _REFUSALS.get(answer.status):
                self._metrics.count_refusal(reason)
            self._seconds.observe(perf_counter() - began)
            self._requests.labels(
                scope["method"] if scope["method"] in _METHODS else "other", str(answer.status)
            ).inc()

    def _find_problem(self, scope: Scope) -> RefractError | None:
        if wrong := self._hosts.find_problem(scope):
            return wrong
        raw = scope.get("raw_path", b"") + scope["query_string"]
        if b"%00" in raw or b"\x00" in raw:
            return MalformedUrl(why="it contains U+0000.")
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self._max_body:
                return BodyTooLarge(limit=self._max_body)
        return None


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


_REFUSALS = {413: "body", 421: "host", 429: "rate"}
"""Statuses that are counted as refusals, with their labels."""


class BoundedBody:
    """Limits the bytes of a body that are read, independent of Content-Length."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = self._left = limit

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise BodyTooLarge(limit=self._limit)
        return message


class _ResponseSender:
    """Adds missing headers to a response."""

    def __init__(
        self, send: Send, scope: Scope, request_id: str, *, https: bool, closing: bool
    ) -> None:
        self._send = send
        self._scope = scope
        self._request_id = request_id
        self._https = https
        self._is_closing = closing
        self.share: NetworkShare | None = None
        self.is_started = False
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_started = True
            self.status = message["status"]
            headers: RawHeaders = list(message.get("headers", ()))
            if self.share is not None and _get_content_type(headers).startswith(
                b"text/event-stream"
            ):
                self.share.become_stream()
            message = {**message, "headers": self._complete_headers(headers)}
        await self._send(message)

    def _complete_headers(self, headers: RawHeaders) -> RawHeaders:
        present = {name.lower() for name, _ in headers}
        if b"content-security-policy" in present:
            present.add(b"x-frame-options")  # its own policy says who may frame it
        if self._is_closing and b"connection" not in present:
            headers.append((b"connection", b"close"))
        if self._scope["state"].get("redirect"):
            return headers  # the same as of the fast lane, so that clients can't tell them apart
        headers.append((b"x-request-id", self._request_id.encode()))
        headers += [
            (name, value)
            for name, value in iter_security_headers(_get_content_type(headers), https=self._https)
            if name not in present
        ]
        headers += [
            (name, value)
            for name, value in self._scope["state"].get("rate_headers", ())
            if name not in present
        ]
        return headers


def _get_content_type(headers: RawHeaders) -> bytes:
    return next((value for name, value in headers if name.lower() == b"content-type"), b"")
