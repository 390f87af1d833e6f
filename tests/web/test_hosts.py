"""Accepted `Host` headers (security finding 16): any was accepted, which allowed DNS rebinding."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.web.hosts import MAX_SPELLINGS, AcceptedHosts
from tests import make
from tests.client import on_sqlite
from tests.people import ada
from tests.redirect.nodes import open_place

__all__ = ["ada"]

MACHINE = socket.gethostname().lower()
EVERYWHERE = {"host": "0.0.0.0"}  # noqa: S104 - compared, never bound
WITH_BASE = {"base_url": "https://Go.example"}
ACCEPTED = [
    (WITH_BASE, "go.example"),
    (WITH_BASE, "go.example:443"),
    (WITH_BASE, "GO.Example."),
    (WITH_BASE, "go.example:8000"),  # a tunnel, or a mapped port
    ({"base_url": "http://[2001:db8::1]:8000"}, "[2001:db8::1]:8000"),
    ({"base_url": "http://localhost:8000"}, "127.0.0.1:8000"),
    ({}, "127.0.0.1:8000"),
    ({}, "localhost"),
    ({}, "refract.localhost:8000"),
    ({}, "[::1]:8000"),
    ({}, "192.168.1.5:8000"),  # an address cannot be bound to another name
    ({}, MACHINE),
    ({}, f"{MACHINE.partition('.')[0]}.local:8000"),
    ({"host": "links.lan"}, "links.lan:8000"),
]
REFUSED = [
    (WITH_BASE, "evil.test"),
    (WITH_BASE, "127.0.0.1"),
    (WITH_BASE, "localhost"),
    (WITH_BASE, "go.example.evil.test"),
    (WITH_BASE, "evil.test@go.example"),
    (WITH_BASE, "go.example:80x"),
    (WITH_BASE, ""),
    (WITH_BASE, "[go.example]"),
    ({}, "evil.test"),
    ({}, "127.0.0.1.evil.test"),
    ({}, "localhost.evil.test"),
    ({}, "2130706433"),
    ({}, "0x7f.1"),
    (EVERYWHERE, "evil.test"),
    (EVERYWHERE, ""),
]


@pytest.mark.parametrize(("given", "host"), ACCEPTED)
def test_our_own_hosts_are_accepted(given: dict[str, Any], host: str) -> None:
    assert AcceptedHosts(Settings(**given)).is_accepted(host.encode())


@pytest.mark.parametrize(("given", "host"), REFUSED)
def test_other_hosts_are_not(given: dict[str, Any], host: str) -> None:
    assert not AcceptedHosts(Settings(**given)).is_accepted(host.encode())


def test_the_spellings_that_are_remembered_are_bounded() -> None:
    hosts = AcceptedHosts(Settings())

    for port in range(1, 1000):
        assert hosts.is_accepted(b"localhost:%d" % port)

    assert len(hosts.prefixes) <= MAX_SPELLINGS


@on_sqlite
async def test_another_host_gets_421_everywhere_but_where_machines_ask(
    client: httpx.AsyncClient,
) -> None:
    for path in ("/", "/pubc0+", "/app/suggest", "/api/v1/links", "/static/app.css"):
        answer = await client.get(path, headers={"Host": "evil.test"})
        assert (answer.status_code, answer.json()["code"]) == (421, "MISDIRECTED_REQUEST"), path
    for path in ("/health", "/ready"):
        assert (await client.get(path, headers={"Host": "10.0.0.9:8000"})).status_code == 200, path


HEADS = {
    b"GET /hit HTTP/1.1\r\nHost: go.test\r\n": 302,
    b"GET /hit HTTP/1.1\r\nHost: go.test:80\r\n": 302,
    b"GET /hit HTTP/1.1\r\nHost: GO.test\r\n": 302,
    b"GET /hit HTTP/1.0\r\n": 302,  # HTTP/1.0 need not name a host
    b"GET http://go.test/hit HTTP/1.1\r\nHost: evil.test\r\n": 302,  # the whole URL counts
    b"GET /hit HTTP/1.1\r\nHost: evil.test\r\n": 421,
    b"GET /hit HTTP/1.0\r\nHost: evil.test\r\n": 421,
    b"GET http://evil.test/hit HTTP/1.1\r\nHost: go.test\r\n": 421,
    b"GET /hit HTTP/1.1\r\n": 400,
    b"GET /hit HTTP/1.1\r\nHost: go.test\r\nHost: go.test\r\n": 400,
    b"GET /hit HTTP/1.1\r\nHost: evil.test\r\nhost: go.test\r\n": 400,
    b"GET /hit HTTP/1.0\r\nHost: go.test\r\nHost: evil.test\r\n": 400,
    b"GET /health HTTP/1.1\r\n": 400,
}


@on_sqlite
async def test_cached_hits_ask_for_the_host_too(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="hit")
    async with open_place(rt) as place, place.on_the_wire() as client:
        assert (await client.get("/hit")).status_code == 302
        assert place.cached == {b"/hit"}
        asked = len(place.reader.asked)
        assert (await client.get("/hit")).status_code == 302
        assert len(place.reader.asked) == asked  # so it is the lane that answers
        found = {}
        for head in HEADS:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
            writer.write(head + b"\r\n")
            found[head] = int((await reader.readuntil(b"\r\n"))[9:12])
            writer.close()
    assert found == HEADS
    assert 'refract_refused_total{reason="host"} 3.0' in rt.metrics.render().decode()


def test_a_base_url_is_not_needed_to_answer_the_address_that_is_bound(tmp_path: Path) -> None:
    assert AcceptedHosts(Settings(data_dir=tmp_path, host="192.168.7.7")).is_accepted(
        b"192.168.7.7:8000"
    )
