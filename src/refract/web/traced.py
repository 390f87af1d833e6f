"""A span for every request that does not leave by the lane."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from refract.core.traces import Traces


class Traced:
    """Put round the application when there is a collector to tell."""

    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        self._app = app
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"), "")
        with self._traces.span(scope["method"], "server", told) as span:
            span.facts["http.request.method"] = scope["method"]

            async def watching(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.facts["http.response.status_code"] = message["status"]
                    if message["status"] >= 500:
                        span.failed = str(message["status"])
                await send(message)

            try:
                await self._app(scope, receive, watching)
            finally:
                route = getattr(scope.get("route"), "path", None) or "short link"  # never the path itself: it is a visitor's
                span.name = f"{scope['method']} {route}"
                span.facts["http.route"] = route
                span.facts["refract.request_id"] = scope.get("state", {}).get("request_id", "")
