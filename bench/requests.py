"""P13: CPU of the server and SQL statements per request, for every frequent call and page.

    python -m bench requests [--links N] [--rounds N] [--only TEXT]

A server with SQLite and the role `all`, a real API key and a real session. The calls take turns on
one connection; the figure is the lower quartile of the rounds, from schedstat of all threads of the
server. Captures are measured with the role `web`, so that the processing of items in the background
does not count. Statements are counted in a second pass, in this process, as they go to the driver.
"""

import argparse
import asyncio
import http.client
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from httpx import AsyncClient

from bench._common import busy, table, tree, write
from bench._links import FIRST_ID, STEP, make_links
from refract.app import WebNode
from refract.core.clock import SystemClock
from refract.core.db.bulk import insert_rows
from refract.core.db.session import Database
from refract.core.db.session import count_statements as observe_statements
from refract.core.ids import SnowflakeGenerator, get_creation_time
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.core.settings.model import Settings
from refract.identity.authentication import SESSION_COOKIE
from refract.links.models import LinkOwner, LinkTotals
from tests import make
from tests.client import client_of
from tools.serving import Served, serving

SECRET = "s" * 40
ROUNDS = 7
REQUESTS_PER_ROUND = 30
WARM_UP = 5
BARS = {
    "GET link": 1.5,
    "POST link": 3.0,
    "POST item": 5.0,
    "page: links": 8.0,
    "page: link": 12.0,
}
"""CPU milliseconds per request that may not be exceeded."""


@dataclass(frozen=True)
class BenchCall:
    """A request that is measured. `body` is called with the number of the request."""

    name: str
    path: str
    method: str = "GET"
    body: Callable[[int], Any] | None = None
    role: str = "all"
    page: bool = False
    repeat: int = REQUESTS_PER_ROUND


@dataclass(frozen=True)
class BenchData:
    """The data directory and the credentials of its user."""

    data_dir: Path
    key: str
    cookie: str
    link_id: int

    def build_headers(self, call: BenchCall) -> dict[str, str]:
        if call.page:
            return {"Cookie": self.cookie, "Accept": "text/html", "Accept-Encoding": "gzip"}
        return {"X-API-Key": self.key, "Content-Type": "application/json"}


def list_calls(link_id: int) -> list[BenchCall]:
    link, api = f"/api/v1/links/{link_id}", "/api/v1"
    return [
        BenchCall("GET me", f"{api}/me"),
        BenchCall("GET link", link),
        BenchCall("GET links, 10", f"{api}/links?limit=10"),
        BenchCall("GET links, 100", f"{api}/links?limit=100"),
        BenchCall("POST link", f"{api}/links", "POST", build_link),
        BenchCall("POST link, name and tag", f"{api}/links", "POST", build_named_link),
        BenchCall("POST bulk, 100", f"{api}/links/bulk", "POST", build_bulk, repeat=4),
        BenchCall("GET link stats", f"{link}/stats"),
        BenchCall("GET all stats", f"{api}/stats"),
        BenchCall("POST item", f"{api}/items", "POST", build_item, role="web"),
        BenchCall("GET library, 10", f"{api}/library?limit=10"),
        BenchCall("GET library, 3 words", f"{api}/library?q=notes%20on%20topic"),
        BenchCall("GET search", f"{api}/search?q=article"),
        BenchCall("GET tags", f"{api}/tags"),
        BenchCall("GET openapi.json", "/api/openapi.json"),
        BenchCall("page: home", "/", page=True),
        BenchCall("page: links", "/app/links", page=True),
        BenchCall("page: link", f"/app/links/{link_id}", page=True),
        BenchCall("page: library", "/app/library", page=True),
        BenchCall("page: settings", "/app/settings", page=True),
        BenchCall("page: tags", "/app/tags", page=True),
        BenchCall("page: list, 12 entries", "/list12", page=True),
        BenchCall("page: not found", "/app/nothing-here", page=True),
    ]


def build_link(number: int) -> Any:
    return {"destination": f"https://example.org/new/{number}"}


def build_named_link(number: int) -> Any:
    return {
        "destination": f"https://example.org/named/{number}",
        "names": [f"bench-{number}"],
        "tags": ["bench"],
    }


def build_bulk(number: int) -> Any:
    return {
        "links": [{"destination": f"https://example.org/bulk/{number}/{i}"} for i in range(100)]
    }


def build_item(number: int) -> Any:
    return {"text": f"Notes on topic {number}: what was said, and what to do about it."}


def prepare(data_dir: Path, links: int) -> BenchData:
    make_links(data_dir, links)
    return asyncio.run(_add_user(data_dir, links))


def build_runtime(data_dir: Path) -> Runtime:
    settings = Settings(data_dir=data_dir, secret_key=SECRET, **SETTINGS)  # type: ignore[arg-type]
    clock = SystemClock()
    return Runtime(
        settings=settings,
        db=Database(settings),
        clock=clock,
        ids=SnowflakeGenerator(900, clock),
        secret=Secret(SECRET.encode()),
    )


SETTINGS: dict[str, Any] = {
    "key_requests_per_hour": 1_000_000,
    "creates_per_hour": 1_000_000,
    "captures_per_hour": 1_000_000,
    "items_per_person": 10_000_000,
}


async def _add_user(data_dir: Path, links: int) -> BenchData:
    """Add a user with half of the links, 200 items and a published list of 12 entries."""
    rt = build_runtime(data_dir)
    async with rt.db.write() as session:
        ada = await make.person(session, rt)
        key = await make.key(session, rt, ada)
        cookie = f"{SESSION_COOKIE.get_name(rt)}={await make.cookie(session, rt, ada)}"
        own = [FIRST_ID + number * STEP for number in range(0, links, 2)]
        await insert_rows(session, LinkOwner, [_build_owner(link_id, ada.id) for link_id in own])
        await insert_rows(session, LinkTotals, [_build_totals(link_id) for link_id in own])
    data = BenchData(data_dir, key, cookie, own[len(own) // 2])
    async with open_client(rt) as client:
        await _add_content(client, data)
    return data


async def _add_content(client: AsyncClient, data: BenchData) -> None:
    async def post(path: str, body: Any) -> Any:
        headers = {"X-API-Key": data.key}
        answer = await client.post(f"/api/v1/{path}", json=body, headers=headers)
        answer.raise_for_status()
        return answer.json()

    for number in range(200):
        await post("items", build_item(number) | {"enrich": False, "new_tags": [f"t{number % 9}"]})
    urls = [f"https://example.com/entry/{number}" for number in range(12)]
    made = await post("lists", {"title": "Reading"})
    await post(f"lists/{made['id']}/entries", {"urls": urls})
    await post(f"lists/{made['id']}/publish", {"slug": "list12"})


@asynccontextmanager
async def open_client(rt: Runtime) -> AsyncIterator[AsyncClient]:
    """Run the application in this process; close everything at the end."""
    app = WebNode(rt)
    try:
        async with client_of(app) as client:
            yield client
    finally:
        if app.engine is not None:
            app.engine.spool.close()
        await rt.close()
        await rt.db.close()


def _build_owner(link_id: int, user_id: int) -> dict[str, Any]:
    return {
        "link_id": link_id,
        "user_id": user_id,
        "primary_link_id": link_id,
        "added_by": None,
        "created_at": get_creation_time(link_id),
    }


def _build_totals(link_id: int) -> dict[str, Any]:
    made = get_creation_time(link_id)
    return {"link_id": link_id, "total_clicks": 3, "bot_clicks": 1, "last_clicked_at": made}


# CPU time, of a server in its own process


def read_cpu_ns(pid: int) -> int:
    """Return the nanoseconds that all threads of a process and its children have run."""
    files = (
        path for child in tree(pid) for path in Path(f"/proc/{child}/task").glob("*/schedstat")
    )
    return sum(int(path.read_text().split()[0]) for path in files)


class ServerClient:
    """One connection to a server, and the number of the next new row."""

    def __init__(self, served: Served, data: BenchData, first: int) -> None:
        parts = urlsplit(served.url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        self._pid = served.process.pid
        self._data = data
        self._number = first

    def send(self, call: BenchCall) -> None:
        self._number += 1
        body = json.dumps(call.body(self._number)) if call.body else None
        self._connection.request(call.method, call.path, body, self._data.build_headers(call))
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 400 and call.name != "page: not found":
            raise SystemExit(f"{call.name}: {answer.status} {text[:300]!r}")

    def measure(self, call: BenchCall) -> float:
        """Return the milliseconds of CPU per request, over one round."""
        began = read_cpu_ns(self._pid)
        for _ in range(call.repeat):
            self.send(call)
        return (read_cpu_ns(self._pid) - began) / call.repeat / 1e6


def measure_cpu(data: BenchData, calls: list[BenchCall], rounds: int) -> dict[str, float]:
    found: dict[str, list[float]] = {call.name: [] for call in calls}
    for number, role in enumerate(sorted({call.role for call in calls}), 1):
        with serving(data.data_dir, role=role, secret_key=SECRET, **SETTINGS) as served:
            client = ServerClient(served, data, number * 1_000_000)
            some = [call for call in calls if call.role == role]
            for call in some:
                for _ in range(WARM_UP):
                    client.send(call)
            time.sleep(3)  # templates and catalogues are prepared behind the start
            for _ in range(rounds):
                for call in some:
                    found[call.name].append(client.measure(call))
    return {name: sorted(times)[len(times) // 4] for name, times in found.items()}


# Statements, in this process


async def count_statements(data: BenchData, calls: list[BenchCall]) -> dict[str, int]:
    """Return the statements of each call after a warm-up."""
    seen: list[str] = []
    found: dict[str, int] = {}
    rt = build_runtime(data.data_dir)
    for engine in (rt.db.engine, rt.db.read_engine):
        observe_statements(engine, seen.append)
    async with open_client(rt) as client:
        for call in calls:
            for number in (9_000_000, 9_000_001):
                seen.clear()
                await client.request(
                    call.method,
                    call.path,
                    json=call.body(number) if call.body else None,
                    headers=data.build_headers(call),
                )
            found[call.name] = len(seen)
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bench requests", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--links", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="calls whose name contains this")
    options = parser.parse_args(arguments)
    load_before = busy()
    with tempfile.TemporaryDirectory(prefix="refract-bench-") as directory:
        data = prepare(Path(directory), options.links)
        calls = [call for call in list_calls(data.link_id) if options.only in call.name]
        statements = asyncio.run(count_statements(data, calls))
        cpu = measure_cpu(data, calls, options.rounds)
    print()
    table(
        ["", "CPU ms", "bar", "SQL"],
        [
            [name, f"{cpu[name]:.2f}", f"{BARS.get(name, '')}", str(statements[name])]
            for name in cpu
        ],
    )
    held = all(cpu[name] <= bar for name, bar in BARS.items() if name in cpu)
    print(f"bars {'held' if held else 'MISSED'}")
    if not options.only:
        calls_found = {
            name: {"cpu_ms": round(cpu[name], 3), "statements": statements[name]} for name in cpu
        }
        write("requests", "P13", load_before, options=vars(options), calls=calls_found, bars=BARS)
    return 0 if held else 1
