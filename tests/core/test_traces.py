"""Traces reach a collector as OTLP, say nothing about visitors, and are not even loaded without one."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.core.traces import MOST_WAITING, Traces, make_traces
from tests.client import client_of
from tests.conftest import make_settings
from tools.servers import free_port

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "data", database_url=database, otlp_url=f"http://127.0.0.1:{free_port()}")


@asynccontextmanager
async def collector(url: str) -> AsyncIterator[list[dict[str, Any]]]:
    """Keeps every span it is told of."""
    got: list[dict[str, Any]] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert head.startswith("post /v1/traces ")
        assert "content-type: application/json" in head
        body = json.loads(await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0])))
        for resource in body["resourceSpans"]:
            got.extend(span for scope in resource["scopeSpans"] for span in scope["spans"])
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(take, "127.0.0.1", int(url.rsplit(":", 1)[1]))
    async with server:
        yield got


async def flushed(traces: Traces) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        await traces.send(client)


async def test_a_request_and_what_it_asked_the_database_are_one_trace(rt: Runtime) -> None:
    application = WebNode(rt)
    async with collector(rt.settings.otlp_url or "") as got, client_of(application) as client:
        await client.get("/secret-name?token=hush", headers={"traceparent": PARENT})
        await client.get("/api/v1/names/roadmap", headers={"traceparent": "rubbish"})
        await flushed(rt.singleton(make_traces))
    assert application.engine is not None
    application.engine.spool.close()

    first, second = [span for span in got if span["kind"] == 2]
    assert (first["name"], first["traceId"], first["parentSpanId"]) == ("GET short link", PARENT[3:35], PARENT[36:52])
    assert second["name"] == "GET /api/v1/names/{name}"
    asked = [span for span in got if span["parentSpanId"] == second["spanId"]]
    assert asked
    assert {span["traceId"] for span in asked} == {second["traceId"]}
    assert {"key": "http.response.status_code", "value": {"intValue": "200"}} in second["attributes"]
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in got)
    for word in ("secret-name", "hush", "roadmap", "127.0.0.1"):
        assert word not in json.dumps(got)


async def test_a_span_that_fails_says_how(rt: Runtime) -> None:
    traces = Traces("http://127.0.0.1:1", "all")
    with pytest.raises(KeyError), traces.span("outer"), traces.span("inner"):
        raise KeyError

    inner, outer = [span.as_json() for span in traces._ended]
    assert (inner["status"], inner["parentSpanId"]) == ({"code": 2, "message": "KeyError"}, outer["spanId"])


async def test_a_collector_that_is_away_costs_nothing_but_spans(rt: Runtime) -> None:
    traces = rt.singleton(make_traces)
    for _ in range(MOST_WAITING + 5):
        with traces.span("x"):
            pass
    assert traces.dropped == 5
    await flushed(traces)
    assert traces.dropped > 5


def test_without_a_collector_it_is_not_loaded(database: str) -> None:
    asked = "import sys, refract.server.process, refract.app, refract.server.worker; sys.exit('refract.core.traces' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
