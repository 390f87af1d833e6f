"""Connections between the process that redirects and those with pages and the API."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.redirect.outside import Outside
from tests.serving import Served, refract, serving
from tests.waiting import PATIENCE, eventually_blocking

PAGE, LINK = b"/health", b"/n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("passing") / "data"


@pytest.fixture(scope="module")
def outside(data: Path) -> Outside:
    return Outside(data)


@pytest.fixture(scope="module")
def server(data: Path, outside: Outside) -> Iterator[Served]:
    with serving(data, REFRACT_BACKGROUND="process") as served:
        outside.link(name="n")
        yield served


@pytest.fixture(scope="module")
def key(server: Served, data: Path) -> str:
    return refract("keys", "create", "--name", "k", "--data-dir", str(data)).stdout.strip()


class Wire:
    """A connection on which bytes are sent as they are."""

    def __init__(self, server: Served) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        self._answers = self.socket.makefile("rb")
        self._host = b"127.0.0.1:%d" % server.port

    def build(self, path: bytes, head: bytes = b"") -> bytes:
        return b"GET %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (path, self._host, head)

    def read_status(self) -> int:
        status = int(self._answers.readline().split()[1])
        length = 0
        while (line := self._answers.readline().strip().lower()) != b"":
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        self._answers.read(length)
        return status

    def ask(self, path: bytes, head: bytes = b"") -> int:
        self.socket.sendall(self.build(path, head))
        return self.read_status()

    def close(self) -> None:
        self._answers.close()
        self.socket.close()


@pytest.fixture
def wire(server: Served) -> Iterator[Wire]:
    made = Wire(server)
    yield made
    made.close()


def test_pages_and_links_take_turns_on_one_connection(wire: Wire) -> None:
    found = [wire.ask(path) for path in (LINK, PAGE, LINK, LINK, b"/missing", PAGE, LINK) * 3]
    assert found == [302, 200, 302, 302, 404, 200, 302] * 3


def test_pipelined_requests_are_answered_in_order(wire: Wire) -> None:
    paths = (LINK, LINK, PAGE, LINK, b"/missing", PAGE, PAGE, LINK)
    wire.socket.sendall(b"".join(map(wire.build, paths)))
    found = [wire.read_status() for _ in paths]
    assert found == [302, 302, 200, 302, 404, 200, 200, 302]


@pytest.mark.parametrize("path", [LINK, PAGE, b"/missing"])
def test_a_head_may_come_in_two_pieces_and_with_the_next_request(wire: Wire, path: bytes) -> None:
    wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    once, then = wire.ask(path), wire.build(PAGE)
    request = wire.build(path, b"DNT: 1\r\n")
    for split in (1, 5, len(request) // 2, *range(len(request) - 4, len(request))):
        wire.socket.sendall(request[:split])
        wire.socket.sendall(request[split:] + then)
        assert (wire.read_status(), wire.read_status()) == (once, 200)


def test_a_large_body_arrives_whole(server: Served, key: str) -> None:
    links = [{"destination": f"https://example.com/{'x' * 900}/{n}"} for n in range(700)]
    answer = httpx.post(
        f"{server.url}/api/v1/links/bulk",
        json={"links": links},
        headers={"x-api-key": key},
        timeout=PATIENCE,
    )
    assert answer.status_code in (200, 201, 207), answer.text[:300]


def test_a_changed_link_is_followed_to_its_new_destination_at_once(
    server: Served, key: str
) -> None:
    headers = {"x-api-key": key}
    with httpx.Client(base_url=server.url, headers=headers, timeout=PATIENCE) as client:
        made = client.post(
            "/api/v1/links", json={"destination": "https://example.com/0", "names": ["turns"]}
        ).json()
        for turn in range(1, 30):
            assert client.get("/turns").headers["location"] == f"https://example.com/{turn - 1}"
            changed = client.patch(
                f"/api/v1/links/{made['id']}", json={"destination": f"https://example.com/{turn}"}
            )
            assert changed.status_code == 200, changed.text


def test_links_are_followed_while_the_other_process_stands_still(
    server: Served, outside: Outside, wire: Wire
) -> None:
    cold = outside.link(name="cold")
    (pages,) = server.children
    waiting = Wire(server)
    os.kill(pages, signal.SIGSTOP)
    try:
        waiting.socket.sendall(waiting.build(PAGE))
        assert [wire.ask(LINK) for _ in range(5)] == [302] * 5
        assert wire.ask(b"/cold") == 302
    finally:
        os.kill(pages, signal.SIGCONT)
    assert waiting.read_status() == 200
    waiting.close()
    eventually_blocking(lambda: outside.clicks(cold.id) == 1)


def test_a_request_that_waits_is_answered_by_the_successor(server: Served) -> None:
    (pages,) = server.children
    os.kill(pages, signal.SIGSTOP)
    waiting = Wire(server)
    waiting.socket.sendall(waiting.build(PAGE))
    os.kill(pages, signal.SIGKILL)
    assert waiting.read_status() == 200
    waiting.close()


def test_each_process_is_followed_when_it_dies(server: Served, wire: Wire) -> None:
    (pages,), redirecting = server.children, server.redirecting
    assert redirecting is not None
    os.kill(redirecting, signal.SIGKILL)
    eventually_blocking(lambda: server.redirecting not in (None, redirecting))
    wire = Wire(server)
    assert [wire.ask(LINK), wire.ask(PAGE), wire.ask(LINK)] == [302, 200, 302]
    wire.close()
    assert server.children == [pages]
