"""OpenTelemetry traces by the SDK. Loaded only where traces are configured (`core.tracing`).

A span never contains a name, a code, an address or other input of a visitor: paths are those of
routes, statements have placeholders for their values, errors are their types. Nothing is registered
globally, so no library creates spans implicitly.
"""

import asyncio
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

import httpx
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from sqlalchemy import event

from refract import __version__
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.core.settings.sources import OTEL_TRACES_ENDPOINT

MAX_STATEMENT = 1000
SHUTDOWN_TIMEOUT = 5.0
"""Seconds for the last spans.

A collector that does not respond must not delay the end of a process.
"""
_TRACES_PATH = "/v1/traces"
_STATEMENT = "refract_span"


class Traces:
    """The tracer of a process, and the thread that sends its spans.

    While the collector is unavailable, spans are dropped. The SDK's own variables apply: sampler,
    headers, resource attributes, batches.
    """

    def __init__(self, rt: Runtime) -> None:
        self.provider = TracerProvider(resource=_resource(rt.settings.role), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=_endpoint(rt.settings.otlp_url or ""))
        self.provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self.provider.get_tracer("refract", __version__)
        # No baggage: visitors could write it, and it would be forwarded.
        self._propagator = TraceContextTextMapPropagator()
        self._watch(rt.db)

    @contextmanager
    def request_span(
        self, method: str, headers: Mapping[str, str], attributes: Mapping[str, str]
    ) -> Iterator[Span]:
        """Open a span for a request, which continues the trace in its headers."""
        context = self._propagator.extract(headers)
        with self._span(method, SpanKind.SERVER, attributes, context) as span:
            yield span

    @contextmanager
    def job_span(self, kind: str) -> Iterator[Span]:
        """Open a span for the run of a job."""
        with self._span(f"job {kind}", SpanKind.CONSUMER, {"refract.job.kind": kind}) as span:
            yield span

    @contextmanager
    def _span(
        self, name: str, kind: SpanKind, attributes: Mapping[str, str], context: Any = None
    ) -> Iterator[Span]:
        span = self._tracer.start_span(name, context, kind, dict(attributes))
        with trace.use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield span
            except BaseException as exc:
                # Not its message, which may contain an address.
                mark_failed(span, type(exc).__name__)
                raise

    async def inject_context(self, request: httpx.Request) -> None:
        """Write the current trace into a request to another service (`traceparent`)."""
        self._propagator.inject(request.headers)

    def _watch(self, db: Database) -> None:
        """Create a span for each statement that is executed within another span."""

        def before(connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            if trace.get_current_span().is_recording():
                operation = statement.split(None, 1)[0].upper()
                attributes = {
                    "db.system.name": str(db.dialect),
                    "db.operation.name": operation,
                    "db.query.text": statement[:MAX_STATEMENT],
                }
                connection.info[_STATEMENT] = self._tracer.start_span(
                    operation, kind=SpanKind.CLIENT, attributes=attributes
                )

        def after(connection: Any, *_rest: Any) -> None:
            span = connection.info.pop(_STATEMENT, None)
            if span is not None:
                span.end()

        def failed(context: Any) -> None:
            span = (
                context.connection.info.pop(_STATEMENT, None)
                if context.connection is not None
                else None
            )
            if span is not None:
                mark_failed(span, type(context.original_exception).__name__)
                span.end()

        for engine in {db.engine, db.read_engine}:
            event.listen(engine.sync_engine, "before_cursor_execute", before)
            event.listen(engine.sync_engine, "after_cursor_execute", after)
            event.listen(engine.sync_engine, "handle_error", failed)

    async def close(self) -> None:
        """Send the last spans, within `SHUTDOWN_TIMEOUT`."""
        sending = Thread(target=self.provider.shutdown, name="traces-shutdown", daemon=True)
        sending.start()
        await asyncio.to_thread(sending.join, SHUTDOWN_TIMEOUT)


def mark_failed(span: Span, error_type: str) -> None:
    """Set the status of a span to an error of this type."""
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", error_type)


def _resource(role: str) -> Resource:
    """Return the attributes of the process; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win."""
    ours = Resource(
        {
            "service.name": f"refract-{role}",
            "service.version": __version__,
            "host.name": platform.node(),
            "process.pid": os.getpid(),
        }
    )
    return Resource.create().merge(ours).merge(OTELResourceDetector().detect())


def _endpoint(url: str) -> str:
    """Return the traces endpoint: below the URL, or exactly the variable for traces."""
    is_complete = url.endswith(_TRACES_PATH) or url == os.environ.get(OTEL_TRACES_ENDPOINT)
    return url if is_complete else f"{url.rstrip('/')}{_TRACES_PATH}"
