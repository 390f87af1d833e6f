"""OpenTelemetry traces, told to a collector by OTLP over HTTP as JSON. Without a collector nothing of this is loaded or counted.

A span never holds a name, a code, an address or anything that a visitor wrote: paths are those of the routes, statements have marks
for their values.
"""

import asyncio
import json
import platform
import secrets
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import structlog
from sqlalchemy import event

from refract import __version__
from refract.core.db.session import Database
from refract.core.runtime import Runtime

MOST_WAITING = 4096
BATCH = 512
SEND_SECONDS = 2.0
PATIENCE = 5.0
Kind = Literal["internal", "server", "client", "consumer"]
_KINDS: dict[Kind, int] = {"internal": 1, "server": 2, "client": 3, "consumer": 5}


@dataclass(slots=True)
class Span:
    """Something that took a while, and within what."""

    name: str
    kind: Kind
    trace: str
    parent: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    began_ns: int = field(default_factory=time.time_ns)
    ended_ns: int = 0
    failed: str = ""
    facts: dict[str, str | int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        status = {"code": 2, "message": self.failed} if self.failed else {}
        facts = [
            {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
            for key, value in self.facts.items()
        ]
        return {
            "traceId": self.trace, "spanId": self.id, "parentSpanId": self.parent, "name": self.name, "kind": _KINDS[self.kind],
            "startTimeUnixNano": str(self.began_ns), "endTimeUnixNano": str(self.ended_ns), "attributes": facts, "status": status,
        }  # fmt: skip


_current: ContextVar[Span | None] = ContextVar("refract_span", default=None)


class Traces:
    """Spans of this process on their way to the collector. When it is away or slow they are dropped: nobody waits for it."""

    def __init__(self, url: str, role: str) -> None:
        self.dropped = 0
        self._url = f"{url.rstrip('/')}/v1/traces"
        self._resource = {"service.name": f"refract-{role}", "service.version": __version__, "host.name": platform.node()}
        self._ended: deque[Span] = deque()
        self._log = structlog.get_logger("refract.traces")

    @contextmanager
    def span(self, name: str, kind: Kind = "internal", traceparent: str = "", **facts: str | int) -> Iterator[Span]:
        """Whatever the block does is within this span. `traceparent` continues somebody else's trace."""
        around = _current.get()
        trace, parent = (around.trace, around.id) if around is not None else _continued(traceparent)
        span = Span(name, kind, trace, parent, facts=facts)
        token = _current.set(span)
        try:
            yield span
        except BaseException as exc:
            span.failed = type(exc).__name__
            raise
        finally:
            _current.reset(token)
            self.end(span)

    def end(self, span: Span) -> None:
        span.ended_ns = time.time_ns()
        if len(self._ended) >= MOST_WAITING:
            self._ended.popleft()
            self.dropped += 1
        self._ended.append(span)

    def watch(self, db: Database) -> None:
        """A span for each statement that is sent within another span."""

        def before(connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            around = _current.get()
            if around is not None:
                span = Span(statement.split(None, 1)[0].upper(), "client", around.trace, around.id)
                span.facts = {"db.system": db.dialect, "db.statement": statement[:1000]}
                connection.info["refract_span"] = span

        def after(connection: Any, *_rest: Any) -> None:
            span = connection.info.pop("refract_span", None)
            if span is not None:
                self.end(span)

        for engine in {db.engine, db.read_engine}:
            event.listen(engine.sync_engine, "before_cursor_execute", before)
            event.listen(engine.sync_engine, "after_cursor_execute", after)

    async def run(self) -> None:
        """Send for as long as the process runs."""
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
            try:
                while True:
                    await asyncio.sleep(SEND_SECONDS)
                    await self.send(client)
            finally:
                await self.send(client)

    async def send(self, client: httpx.AsyncClient) -> None:
        while self._ended:
            some = [self._ended.popleft() for _ in range(min(BATCH, len(self._ended)))]
            try:
                answer = await client.post(self._url, content=self._body(some), headers={"content-type": "application/json"})
                answer.raise_for_status()
            except httpx.HTTPError as exc:
                self.dropped += len(some)
                self._log.warning("traces_not_sent", reason=str(exc) or type(exc).__name__, spans=len(some))
                return

    def _body(self, spans: list[Span]) -> bytes:
        resource = {"attributes": [{"key": key, "value": {"stringValue": value}} for key, value in self._resource.items()]}
        scope = {"scope": {"name": "refract", "version": __version__}, "spans": [span.as_json() for span in spans]}
        return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}).encode()


def _continued(traceparent: str) -> tuple[str, str]:
    """Trace and parent of a W3C `traceparent`; a new trace when there is none, or none that is one."""
    parts = traceparent.split("-")
    if len(parts) == 4 and [len(part) for part in parts] == [2, 32, 16, 2]:
        _, trace, parent, _ = parts
        if all(letter in "0123456789abcdef" for letter in trace + parent) and int(trace, 16) and int(parent, 16):
            return trace, parent
    return secrets.token_hex(16), ""


def make_traces(rt: Runtime) -> Traces:
    traces = Traces(rt.settings.otlp_url or "", rt.settings.role)
    traces.watch(rt.db)
    return traces
