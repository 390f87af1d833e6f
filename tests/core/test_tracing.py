"""Traces reach a collector as OTLP, without data of visitors; not loaded without one."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from starlette.types import Receive, Scope, Send

from refract.app import WebNode
from refract.cli.doctor.endpoints import check_trace_collector
from refract.cli.doctor.findings import FindingStatus
from refract.core import otel
from refract.core.errors import RefractError
from refract.core.otel import Traces
from refract.core.runtime import Runtime
from refract.core.settings.loader import load_settings
from refract.core.settings.model import Settings
from refract.core.tracing import client_hooks, get_traces, job_span
from refract.web.request_spans import RequestSpans
from tests.client import client_of
from tests.conftest import make_settings
from tools.servers import free_port

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
BLOCK_SDK = "import sys; sys.modules['opentelemetry.sdk'] = None"


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(
        tmp_path / "data", database_url=database, otlp_url=f"http://127.0.0.1:{free_port()}"
    )


class Collector:
    """An OTLP receiver that keeps spans, resources and headers."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resources: list[dict[str, Any]] = []
        self.heads: list[str] = []
        self.raw = b""

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        body = await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
        self.heads.append(head)
        self.raw += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(values_of(resource.resource.attributes))
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def of_kind(self, kind: "Span.SpanKind.ValueType") -> list[Span]:
        return [span for span in self.spans if span.kind == kind]


def values_of(attributes: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}


@asynccontextmanager
async def collecting(url: str) -> AsyncIterator[Collector]:
    collector = Collector()
    server = await asyncio.start_server(collector.take, "127.0.0.1", int(url.rsplit(":", 1)[1]))
    async with server:
        yield collector


async def flush(rt: Runtime) -> None:
    """Send what has ended so far; the exporter works in a thread, so the collector can answer."""
    traces = get_traces(rt)
    assert traces is not None
    assert await asyncio.to_thread(traces.provider.force_flush, 10_000)


@asynccontextmanager
async def serving(rt: Runtime) -> AsyncIterator[httpx.AsyncClient]:
    application = WebNode(rt)
    async with client_of(application) as client:
        yield client
    assert application.engine is not None
    application.engine.spool.close()


async def test_a_request_and_what_it_asked_the_database_are_one_trace(rt: Runtime) -> None:
    async with collecting(rt.settings.otlp_url or "") as collector, serving(rt) as client:
        await client.get(
            "/secret-name?token=hush", headers={"traceparent": PARENT, "user-agent": "Snooper/1"}
        )
        await client.get(
            "/api/v1/names/roadmap", headers={"traceparent": "rubbish", "baggage": "whose=mine"}
        )
        await flush(rt)

    first, second = collector.of_kind(Span.SPAN_KIND_SERVER)
    assert (first.name, first.trace_id.hex(), first.parent_span_id.hex()) == (
        "GET short link",
        PARENT[3:35],
        PARENT[36:52],
    )
    assert "http.route" not in values_of(first.attributes)
    assert second.name == "GET /api/v1/names/{name}"
    told = values_of(second.attributes)
    request_id = told.pop("refract.request_id")
    assert request_id
    assert told == {
        "http.request.method": "GET",
        "http.route": "/api/v1/names/{name}",
        "http.response.status_code": 200,
        "network.protocol.version": "1.1",
        "url.scheme": "http",
    }
    asked = [span for span in collector.spans if span.parent_span_id == second.span_id]
    assert asked
    assert {span.trace_id for span in asked} == {second.trace_id}
    for span in asked:
        facts = values_of(span.attributes)
        assert span.kind == Span.SPAN_KIND_CLIENT
        assert facts["db.system.name"] == "sqlite"
        assert facts["db.query.text"].startswith(facts["db.operation.name"])
        assert span.name == facts["db.operation.name"]
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in collector.spans)
    for word in (b"secret-name", b"hush", b"roadmap", b"127.0.0.1", b"Snooper", b"whose"):
        assert word not in collector.raw
    assert collector.heads[0].startswith("post /v1/traces ")
    assert "content-type: application/x-protobuf" in collector.heads[0]
    assert collector.resources[0]["service.name"] == "refract-all"


async def test_no_framework_traces_beside_us(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """FastAPI creates spans with paths and queries if an operator has a global provider."""
    traces = get_traces(rt)
    assert traces is not None
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", traces.provider)
    assert trace.get_tracer_provider() is traces.provider

    async with collecting(rt.settings.otlp_url or "") as collector, serving(rt) as client:
        await client.get("/api/v1/names/roadmap?token=hush")
        await flush(rt)

    assert len(collector.of_kind(Span.SPAN_KIND_SERVER)) == 1
    assert {span.name for span in collector.of_kind(Span.SPAN_KIND_INTERNAL)} == set()
    for word in (b"roadmap", b"hush", b"url.path"):
        assert word not in collector.raw


async def test_a_job_that_fails_says_how_and_not_about_what(rt: Runtime) -> None:
    async with collecting(rt.settings.otlp_url or "") as collector:
        with pytest.raises(KeyError), job_span(rt, "enrich_item"):
            raise KeyError("https://secret.example/")
        with pytest.raises(DBAPIError), job_span(rt, "broken_query"):
            async with rt.db.read() as session:
                await session.execute(text("SELECT nothing FROM nowhere"))
        with job_span(rt, "good"):
            async with rt.db.read() as session:
                await session.execute(text("SELECT 1"))
        await flush(rt)

    spans = {span.name: span for span in collector.of_kind(Span.SPAN_KIND_CONSUMER)}
    assert list(spans) == ["job enrich_item", "job broken_query", "job good"]
    assert values_of(spans["job enrich_item"].attributes) == {
        "refract.job.kind": "enrich_item",
        "error.type": "KeyError",
    }
    assert spans["job enrich_item"].status.code == Status.STATUS_CODE_ERROR
    assert not spans["job enrich_item"].events
    statements = {
        values_of(span.attributes)["db.query.text"]: span
        for span in collector.of_kind(Span.SPAN_KIND_CLIENT)
    }
    broken, good = statements["SELECT nothing FROM nowhere"], statements["SELECT 1"]
    assert (broken.status.code, values_of(broken.attributes)["error.type"]) == (
        Status.STATUS_CODE_ERROR,
        "OperationalError",
    )
    assert broken.parent_span_id == spans["job broken_query"].span_id
    assert (good.status.code, good.parent_span_id) == (
        Status.STATUS_CODE_UNSET,
        spans["job good"].span_id,
    )
    assert b"secret.example" not in collector.raw


async def test_a_fault_is_an_error_and_a_refusal_is_none(rt: Runtime) -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"] == "/crash":
            raise RuntimeError("https://secret.example/")
        status = int(scope["path"].removeprefix("/"))
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    traces = get_traces(rt)
    assert traces is not None
    transport = httpx.ASGITransport(RequestSpans(app, traces))
    async with (
        collecting(rt.settings.otlp_url or "") as collector,
        httpx.AsyncClient(transport=transport, base_url="http://go.test") as client,
    ):
        await client.get("/404")
        await client.request("BREW", "/503")
        with pytest.raises(RuntimeError):
            await client.get("/crash")
        await flush(rt)

    refused, fault, crash = collector.of_kind(Span.SPAN_KIND_SERVER)
    assert refused.status.code == Status.STATUS_CODE_UNSET
    assert (fault.status.code, values_of(fault.attributes)["error.type"]) == (
        Status.STATUS_CODE_ERROR,
        "503",
    )
    assert (fault.name, values_of(fault.attributes)["http.request.method"]) == (
        "HTTP short link",
        "_OTHER",
    )
    assert (crash.status.code, values_of(crash.attributes)["error.type"]) == (
        Status.STATUS_CODE_ERROR,
        "RuntimeError",
    )
    for word in (b"secret.example", b"BREW", b"go.test"):
        assert word not in collector.raw


async def test_the_trace_is_handed_on_to_services_of_the_operator(rt: Runtime) -> None:
    seen: list[httpx.Headers] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return httpx.Response(200)

    async with (
        collecting(rt.settings.otlp_url or "") as collector,
        httpx.AsyncClient(
            transport=httpx.MockTransport(answer), event_hooks=client_hooks(rt)
        ) as client,
    ):
        with job_span(rt, "enrich_item"):
            await client.post("http://model.test/v1/chat/completions")
        await client.get("http://model.test/outside")
        await flush(rt)

    (span,) = collector.spans
    sent, _, flags = seen[0]["traceparent"].rpartition("-")
    assert sent == f"00-{span.trace_id.hex()}-{span.span_id.hex()}"
    assert int(flags, 16) & 1, "sampled"
    assert "traceparent" not in seen[1]


async def test_the_caller_decides_whether_a_trace_is_kept(rt: Runtime) -> None:
    async with collecting(rt.settings.otlp_url or "") as collector, serving(rt) as client:
        await client.get("/api/v1/names/roadmap", headers={"traceparent": UNSAMPLED})
        await flush(rt)

    assert collector.spans == []


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str]], None]:
    def set_all(values: Mapping[str, str]) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return set_all


async def test_variables_of_the_sdk_apply(
    rt: Runtime, variables: Callable[[Mapping[str, str]], None]
) -> None:
    variables(
        {
            "OTEL_SERVICE_NAME": "links",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test,host.name=elsewhere",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc",
            "OTEL_TRACES_SAMPLER": "traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": "1.0",
        }
    )
    async with collecting(rt.settings.otlp_url or "") as collector:
        with job_span(rt, "a"):
            pass
        await flush(rt)

    (resource,) = collector.resources
    wanted = {
        "service.name": "links",
        "deployment.environment.name": "test",
        "host.name": "elsewhere",
    }
    assert resource | wanted == resource
    assert "authorization: bearer abc" in collector.heads[0]


@pytest.mark.parametrize(
    "switch", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_SAMPLER": "always_off"}]
)
async def test_the_sdk_can_be_switched_off(
    rt: Runtime, variables: Callable[[Mapping[str, str]], None], switch: dict[str, str]
) -> None:
    variables(switch)
    async with collecting(rt.settings.otlp_url or "") as collector:
        with job_span(rt, "a"):
            pass
        await flush(rt)

    assert collector.spans == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"},
            "http://collector:4318/v1/traces",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/otlp/"},
            "http://collector:4318/otlp/v1/traces",
        ),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/spans"},
            "http://collector:4318/spans",
        ),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b:2/v1/traces",
            },
            "http://b:2/v1/traces",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "REFRACT_OTLP_URL": "http://c:3"},
            "http://c:3/v1/traces",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_SDK_DISABLED": "TRUE"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({"REFRACT_OTLP_URL": "http://c:3/v1/traces"}, "http://c:3/v1/traces"),
    ],
)
def test_where_traces_go(
    database: str,
    variables: Callable[[Mapping[str, str]], None],
    given: dict[str, str],
    expected: str | None,
) -> None:
    variables(given)

    url = load_settings().otlp_url

    assert (otel._endpoint(url) if url is not None else None) == expected


async def test_a_collector_that_is_away_holds_up_nobody(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spans are dropped, and the end of the process waits a bounded time for the last of them."""
    monkeypatch.setattr(otel, "SHUTDOWN_TIMEOUT", 0.2)
    for _ in range(5_000):
        with job_span(rt, "x"):
            pass
    asking = asyncio.get_running_loop().time()
    await rt.singleton(Traces).close()

    assert asyncio.get_running_loop().time() - asking < 5


def test_without_a_collector_nothing_is_loaded(database: str) -> None:
    asked = (
        "import sys, refract.server.process, refract.app, refract.registry;"
        " refract.registry.list_jobs();"
        " sys.exit(any(name.startswith(('refract.core.otel', 'opentelemetry.sdk',"
        " 'opentelemetry.exporter')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


@pytest.mark.parametrize(
    ("variable", "code"),
    [("REFRACT_OTLP_URL", 2), ("OTEL_EXPORTER_OTLP_ENDPOINT", 0)],
    ids=["configured", "standard variable alone"],
)
def test_without_the_extra_the_start_says_what_to_install(
    database: str, tmp_path: Path, variable: str, code: int
) -> None:
    """The standard variable may be meant for other programs: without the extra it is ignored."""
    command = (
        f"{BLOCK_SDK}; from refract.core.settings.loader import check_extras, load_settings; from"
        " refract.cli import main; "
    )
    serve = "sys.argv[1:] = ['serve', '--port', '0', '--data-dir', sys.argv[1]]; sys.exit(main())"
    ask = "check_extras(load_settings())"
    environment = {**os.environ, variable: "http://127.0.0.1:4318"}

    done = subprocess.run(
        [sys.executable, "-c", command + (serve if code else ask), str(tmp_path / "data")],
        check=False, capture_output=True, text=True, env=environment, timeout=60,
    )  # fmt: skip

    assert done.returncode == code, done.stderr
    assert ('pip install "refract-links[otel]"' in done.stderr) == bool(code)
    assert not (tmp_path / "data").exists()


async def test_the_doctor_names_what_is_missing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)

    (finding,) = await check_trace_collector(settings)

    assert finding.status is FindingStatus.ERROR
    assert "OpenTelemetry is not installed" in finding.message
    assert "refract-links[otel]" in (finding.remedy or "")


def test_a_node_without_the_extra_does_not_start_half(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(RefractError, match="extra otel"):
        WebNode(rt)
