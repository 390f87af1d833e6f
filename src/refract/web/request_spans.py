"""Middleware with an OpenTelemetry span for every request that the fast lane doesn't handle."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from refract.core.otel import Traces, mark_failed

_METHODS = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}
)
_CONTEXT_HEADERS = frozenset({b"traceparent", b"tracestate"})


class RequestSpans:
    """Wrap an application in spans.

    Attributes follow the HTTP conventions, without path and client address.
    """

    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        self._app = app
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request within a span; pass other connections through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        attributes = {
            "http.request.method": method,
            "url.scheme": scope["scheme"],
            "network.protocol.version": scope["http_version"],
        }
        context = {
            name.decode(): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in _CONTEXT_HEADERS
        }
        with self._traces.request_span(method, context, attributes) as span:

            async def observed_send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        mark_failed(span, str(message["status"]))
                await send(message)

            try:
                await self._app(scope, receive, observed_send)
            finally:
                route = getattr(scope.get("route"), "path", None)
                span.update_name(
                    f"{'HTTP' if method == '_OTHER' else method} {route or 'short link'}"
                )  # never a visitor's path
                if route is not None:
                    span.set_attribute("http.route", route)
                span.set_attribute(
                    "refract.request_id", scope.get("state", {}).get("request_id", "")
                )
