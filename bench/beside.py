"""P14: redirects beside ingest, dashboards, imports and merges, against the same load without them.

    python -m bench beside [--rounds N] [--seconds S] [--rate R] [--only WORK]

Two servers on SQLite take turns: one with the role `redirect`, which stores nothing, and one with
the role `all`, which stores the clicks and meanwhile gets one kind of work. A process of its own
sends redirects at a fixed rate and measures from the moment each was due. The figure is the median
of the rounds; what counts is the ratio of the 99th percentiles within a round, since both servers
meet the same machine.
"""

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench._common import AGENT, busy, table, write
from bench.requests import SECRET, SETTINGS, BenchData, prepare
from tools.serving import Served, serving

LINKS = 10_000
MAX_RATIO = 2.0
CONNECTIONS = 4
IMPORT_ROWS = 3_000
PAUSE_SECONDS = 0.05
PROBE_NICENESS = -10
PROBE = "import sys; from bench.beside import probe; probe(*sys.argv[1:])"
PAGES = ("/", "/app/links/{link_id}", "/app/links", "/app/library")


@dataclass(frozen=True)
class Latency:
    """Milliseconds between the moment a redirect was due and its response."""

    median: float
    p99: float


def probe(host: str, port: str, rate: str, seconds: str) -> None:
    """Send redirects at a fixed rate on several connections; print their latencies."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - of the other process

    with suppress(
        PermissionError
    ):  # clients are elsewhere: they do not wait for the server's cores
        os.nice(PROBE_NICENESS)
    each = float(rate) / CONNECTIONS
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        found = pool.map(
            lambda number: _probe_connection(host, int(port), each, float(seconds), number),
            range(CONNECTIONS),
        )
        print(json.dumps([latency for latencies in found for latency in latencies]))


def _probe_connection(
    host: str, port: int, rate: float, seconds: float, number: int
) -> list[float]:
    import socket  # noqa: PLC0415 - as above

    found = []
    head = f"HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: {AGENT}\r\n\r\n"
    with socket.create_connection((host, port)) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.perf_counter() + number / rate / CONNECTIONS
        for count in range(int(rate * seconds)):
            due = began + count / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            name = (count * 7919 + number) % LINKS
            wire.sendall(f"GET /s{name} {head}".encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += wire.recv(4096)
            if b" 302 " not in answer[:16]:
                raise SystemExit(f"no redirect: {answer[:200]!r}")
            found.append(time.perf_counter() - due)
    return found


def measure(served: Served, rate: float, seconds: float) -> Latency:
    parts = urlsplit(served.url)
    words = [str(parts.hostname), str(parts.port), str(rate), str(seconds)]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=True
    )
    latencies = sorted(json.loads(done.stdout))
    return Latency(
        latencies[len(latencies) // 2] * 1000, latencies[len(latencies) * 99 // 100] * 1000
    )


class WorkClient:
    """A user with a session and an API key, on one connection."""

    def __init__(self, served: Served, data: BenchData) -> None:
        parts = urlsplit(served.url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        self._data = data

    def open_page(self, path: str) -> None:
        headers = {"Cookie": self._data.cookie, "Accept": "text/html"}
        self._request("GET", path.format(link_id=self._data.link_id), None, headers)

    def call(self, method: str, path: str, body: str | None = None) -> Any:
        """Call the API, and return what it answers."""
        headers = {"X-API-Key": self._data.key, "Content-Type": "application/json"}
        return json.loads(self._request(method, f"/api/v1{path}", body, headers))

    def get_stats(self) -> None:
        self.call("GET", f"/links/{self._data.link_id}/stats")

    def _request(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> bytes:
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:300]!r}")
        return text


def open_dashboards(client: WorkClient, number: int) -> None:
    """Open a page with figures, and read those of a link."""
    client.open_page(PAGES[number % len(PAGES)])
    client.get_stats()


def import_bookmarks(client: WorkClient, _number: int) -> None:
    """Import a file of bookmarks, and wait until the job has ended."""
    run = time.time_ns()
    rows = "\n".join(
        f'<DT><A HREF="https://example.net/{run}/{row}" TAGS="a{row % 50}">Page {row}</A>'
        for row in range(IMPORT_ROWS)
    )
    file = f"<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p>{rows}</DL>"
    started = client.call("POST", "/library/imports", file)
    while client.call("GET", f"/library/imports/{started['id']}")["status"] == "RUNNING":
        time.sleep(PAUSE_SECONDS)


def merge_tags(client: WorkClient, _number: int) -> None:
    """Merge tags of the library and undo it."""
    tags = client.call("GET", "/tags?scope=personal&limit=10")["items"]
    target, *sources = [tag["id"] for tag in tags[:3]]
    client.call("POST", "/tags/merge", json.dumps({"target": target, "sources": sources}))
    client.call("POST", f"/tags/{target}/undo", "{}")


Work = Callable[[WorkClient, int], None]
WORKS: dict[str, Work | None] = {
    "ingest": None,
    "dashboards": open_dashboards,
    "imports": import_bookmarks,
    "merges": merge_tags,
}


@contextmanager
def working(served: Served, data: BenchData, work: Work | None) -> Iterator[None]:
    """Repeat a kind of work during the block."""
    stop = threading.Event()

    def repeat() -> None:
        client, number = WorkClient(served, data), 0
        while not stop.is_set() and work is not None:
            work(client, number)
            number += 1
            stop.wait(PAUSE_SECONDS)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bench beside", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--only", choices=WORKS, action="append", help="a kind of work")
    options = parser.parse_args(arguments)
    load_before = busy()
    with tempfile.TemporaryDirectory(prefix="refract-bench-") as directory:
        works = {name: WORKS[name] for name in options.only or WORKS}
        found = run_rounds(Path(directory), works, options.rounds, options.rate, options.seconds)
    print()
    table(
        ["beside", "p50 ms", "p99 ms", "p99 of redirect alone", "ratio"],
        [[name, *(f"{value:.2f}" for value in row.values())] for name, row in found.items()],
    )
    print(f"P14 bar: ratio ≤ {MAX_RATIO:g}")
    write("beside", "P14", load_before, options=vars(options), works=found)
    return 0 if all(row["ratio"] <= MAX_RATIO for row in found.values()) else 1


def run_rounds(
    directory: Path, works: dict[str, Work | None], rounds: int, rate: float, seconds: float
) -> dict[str, dict[str, float]]:
    """Return the figures of each kind of work."""
    data = prepare(directory / "all", LINKS)
    shutil.copytree(data.data_dir, directory / "redirect")
    measured: dict[str, list[tuple[Latency, Latency]]] = {name: [] for name in works}
    settings = {**SETTINGS, "secret_key": SECRET, "cached_links": LINKS}
    with (
        serving(directory / "redirect", role="redirect", **settings) as alone,
        serving(data.data_dir, role="all", **settings) as served,
    ):
        for server in (alone, served):  # everything cached and loaded
            measure(server, rate, LINKS / rate)
        for _ in range(rounds):
            for name, work in works.items():
                quiet = measure(alone, rate, seconds)
                with working(served, data, work):
                    measured[name].append((measure(served, rate, seconds), quiet))
    return {
        name: {
            "p50_ms": statistics.median(beside.median for beside, _ in pairs),
            "p99_ms": statistics.median(beside.p99 for beside, _ in pairs),
            "alone_p99_ms": statistics.median(quiet.p99 for _, quiet in pairs),
            "ratio": statistics.median(beside.p99 / quiet.p99 for beside, quiet in pairs),
        }
        for name, pairs in measured.items()
    }
