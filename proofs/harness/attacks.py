"""What hostile strangers send: every attack of the threat model, bounded in rate and in time.

A process of its own, so that the measuring side shares no event loop with it: `python -m
proofs.harness.attacks PORT SECONDS SEED KEY LINK`. It prints one JSON object: for each attack, how
often it got which answer, and the largest answer in bytes. With 0 seconds each attack is tried
once, which warms up what is loaded on first use.
"""

import asyncio
import contextlib
import gzip
import json
import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from proofs.harness.hostile_pages import PAGES
from proofs.harness.wire import get, request

PATIENCE = 20.0
NETWORKS = 12
PIPELINED = 200
NO_ANSWER = 0
PAGES_HOST = "127.0.0.2"
"""Another host than the site's: nobody may link to the site itself."""


@dataclass
class Wave:
    """One run of all attacks: where they go, when they end, what came back."""

    port: int
    deadline: float
    chance: random.Random
    key: str
    link: str
    pages: str = ""
    answers: dict[str, Counter[int]] = field(default_factory=dict)
    largest: Counter[str] = field(default_factory=Counter)

    async def rounds(self, pause: float) -> AsyncIterator[int]:
        """Yield until time is up, at least once, resting `pause` seconds in between."""
        number = 0
        while number == 0 or time.monotonic() < self.deadline:
            yield number
            number += 1
            await asyncio.sleep(pause)

    def network(self) -> str:
        """Pretend to be one of a few client networks behind the trusted proxy."""
        return f"x-forwarded-for: 198.51.{self.chance.randrange(NETWORKS)}.7"

    @property
    def origin(self) -> str:
        return f"origin: http://127.0.0.1:{self.port}"

    def note(self, attack: str, status: int, size: int = 0) -> None:
        self.answers.setdefault(attack, Counter())[status] += 1
        self.largest[attack] = max(self.largest[attack], size)

    async def send(self, attack: str, data: bytes, *, hang_up: bool = False) -> tuple[int, bytes]:
        """Send on a connection of its own; note and return the status (0: none) and the answer."""
        answer = b""
        try:
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    writer.write(data)
                    await writer.drain()
                    answer = b"" if hang_up else await _read_answer(reader)
                finally:
                    writer.transport.abort()
        except (OSError, TimeoutError, EOFError):
            pass
        status = int(answer[9:12]) if answer[9:12].isdigit() else NO_ANSWER
        self.note(attack, status, len(answer))
        return status, answer


async def _read_answer(reader: asyncio.StreamReader) -> bytes:
    """Read one response to its end: by its length, or until the connection closes."""
    head = await reader.readuntil(b"\r\n\r\n")
    folded = head.lower()
    if b"content-length:" in folded:
        length = int(folded.split(b"content-length:")[1].split(b"\r\n")[0])
        with contextlib.suppress(asyncio.IncompleteReadError):
            return head + await reader.readexactly(length)
    return head


async def list_entries(wave: Wave) -> None:
    """Anonymous list entries whose pages are small on the wire and dear to parse."""
    shapes = sorted(PAGES)
    async for number in wave.rounds(0.25):
        cookie = f"cookie: refract_creator={uuid.UUID(int=wave.chance.getrandbits(128), version=4)}"
        asking = (cookie, wave.origin, wave.network())
        status, answer = await wave.send(
            "list entry", request("POST", "/api/v1/lists", b"{}", *asking)
        )
        if status != 201:
            continue
        made = json.loads(answer.partition(b"\r\n\r\n")[2])["id"]
        page = {"url": f"{wave.pages}/{shapes[number % len(shapes)]}"}
        adding = request(
            "POST", f"/api/v1/lists/{made}/entries", json.dumps(page).encode(), *asking
        )
        await wave.send("list entry", adding)


async def captures(wave: Wave) -> None:
    """A person with a key captures hostile pages into the library."""
    shapes = sorted(PAGES)
    async for number in wave.rounds(0.5):
        page = {"text": f"{wave.pages}/{shapes[number % len(shapes)]}?{number}"}
        await wave.send(
            "capture",
            request("POST", "/api/v1/items", json.dumps(page).encode(), f"x-api-key: {wave.key}"),
        )


async def unknown_keys(wave: Wave) -> None:
    """Bodies of unknown JSON keys: huge, and as large as is allowed."""
    huge = json.dumps({str(number): 1 for number in range(320_000)}).encode()
    largest = json.dumps({str(number): 1 for number in range(5_000)}).encode()
    deep = b"[" * 30_000 + b"]" * 30_000
    for_each = (("huge body", huge), ("unknown keys", largest), ("deep body", deep))
    async for number in wave.rounds(0.2):
        attack, body = for_each[number % 3] if wave.deadline else for_each[0]
        path = "/api/v1/lists" if number % 2 else "/api/v1/links"
        await wave.send(attack, request("POST", path, body, wave.network()))


async def qr_codes(wave: Wave) -> None:
    """QR codes of long paths, each different."""
    async for number in wave.rounds(0.05):
        extra = "x" * (2_300 if number % 2 else 200) + str(number)
        await wave.send(
            "QR code", get(f"/{wave.link}.qr/{extra}?format=png&size=2048", wave.network())
        )


async def api_documents(wave: Wave) -> None:
    """The largest pages that need no account."""
    paths = ("/api/openapi.json", "/api/docs")
    async for number in wave.rounds(0.1):
        await wave.send("API document", get(paths[number % 2], "accept: text/html", wave.network()))


async def unknown_names(wave: Wave) -> None:
    """Names that do not exist, as a browser and as a program."""
    async for number in wave.rounds(0.02):
        accept = "text/html" if number % 2 else "*/*"
        path = f"/{wave.chance.getrandbits(60):x}"
        await wave.send("unknown name", get(path, f"accept: {accept}", wave.network()))


async def suggestions(wave: Wave) -> None:
    """Prefixes, to walk the names of others."""
    async for number in wave.rounds(0.05):
        await wave.send("suggestions", get(f"/app/suggest?q={number % 36:x}", wave.network()))


async def foreign_hosts(wave: Wave) -> None:
    """Requests for another host, as a rebinding page sends them."""
    async for _ in wave.rounds(0.1):
        data = get(f"/{wave.link}+", wave.network()).replace(
            b"\r\nhost: ", b"\r\nhost: evil.test\r\nx-was: ", 1
        )
        await wave.send("foreign host", data)


async def long_paths(wave: Wave) -> None:
    """Extra paths of 60 kB."""
    async for _ in wave.rounds(0.2):
        await wave.send("long path", get(f"/{wave.link}/{'a/' * 30_000}", wave.network()))


async def cut_bodies(wave: Wave) -> None:
    """Clients that hang up in the middle of a body."""
    async for _ in wave.rounds(0.1):
        data = request("POST", "/api/v1/lists", b"{" + b" " * 500, wave.network())[:-300]
        await wave.send("cut body", data, hang_up=True)


async def reports(wave: Wave) -> None:
    """Reports of abuse, without end."""
    body = json.dumps({"target": f"/{wave.link}", "reason": "spam"}).encode()
    async for _ in wave.rounds(0.1):
        await wave.send(
            "report", request("POST", "/api/v1/reports", body, wave.origin, wave.network())
        )


async def imports(wave: Wave) -> None:
    """Trial imports of bookmark files that are dear to parse."""
    rows = "".join(f'<DT><A HREF="https://example.com/{n}">{n}</A>' for n in range(40_000))
    body = json.dumps(
        {"format": "netscape", "content": f"<DL>{rows}</DL>", "dry_run": True}
    ).encode()
    async for _ in wave.rounds(3.0):
        await wave.send(
            "trial import",
            request("POST", "/api/v1/library/imports", body, f"x-api-key: {wave.key}"),
        )


async def slow_heads(wave: Wave) -> None:
    """Connections that never finish their head."""
    async for _ in wave.rounds(0.3):
        await wave.send("slow head", f"GET /{wave.link} HTTP/1.1\r\nx-slow: ".encode())


async def pipelined_pages(wave: Wave) -> None:
    """As many requests as the connection takes, all answers read."""
    await _pipeline(wave, "pipelined /health", get("/health", wave.network()), reads=True)


async def pipelined_links(wave: Wave) -> None:
    """The same for a cached link: every answer is a click."""
    await _pipeline(wave, "pipelined link", get(f"/{wave.link}", wave.network()), reads=True)


async def pipelined_unread(wave: Wave) -> None:
    """The same without reading one answer."""
    await _pipeline(wave, "pipelined, unread", get("/health", wave.network()), reads=False)


async def _pipeline(wave: Wave, attack: str, one: bytes, *, reads: bool) -> None:
    async for _ in wave.rounds(0.1):
        answered = 0
        with contextlib.suppress(OSError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", wave.port)
            try:
                while time.monotonic() < wave.deadline or not answered:
                    writer.write(one * PIPELINED)
                    async with asyncio.timeout(PATIENCE):
                        await writer.drain()
                        data = await reader.read(1 << 20) if reads else b"HTTP/1.1 "
                    answered += data.count(b"HTTP/1.1 ")
                    if not data:
                        break
            finally:
                writer.transport.abort()
        wave.answers.setdefault(attack, Counter())[200] += answered


Attack = Callable[[Wave], Awaitable[None]]
ATTACKS: tuple[tuple[Attack, int], ...] = (
    (list_entries, 2),
    (captures, 1),
    (unknown_keys, 2),
    (qr_codes, 3),
    (api_documents, 2),
    (unknown_names, 3),
    (suggestions, 1),
    (foreign_hosts, 1),
    (long_paths, 1),
    (cut_bodies, 1),
    (reports, 1),
    (imports, 1),
    (slow_heads, 8),
    (pipelined_pages, 1),
    (pipelined_links, 1),
    (pipelined_unread, 2),
)
"""Each attack and how many clients carry it out at the same time."""


async def serve_pages() -> tuple[asyncio.Server, str]:
    """Serve the hostile pages on loopback, compressed as an attacker would."""
    packed = {name: gzip.compress(text.encode(), 9) for name, text in PAGES.items()}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            asked = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            body = packed.get(asked.strip("/").partition("?")[0], b"")
            head = (
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-encoding:"
                f" gzip\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, PAGES_HOST, 0)
    return server, f"http://{PAGES_HOST}:{server.sockets[0].getsockname()[1]}"


async def attack(port: int, seconds: float, seed: int, key: str, link: str) -> dict[str, object]:
    server, pages = await serve_pages()
    until = time.monotonic() + seconds if seconds else 0.0
    wave = Wave(port, until, random.Random(seed), key, link, pages)
    clients = [one(wave) for one, number in ATTACKS for _ in range(number if seconds else 1)]
    try:
        await asyncio.gather(*clients)
    finally:
        server.close()
    return {
        name: {
            "answers": {str(status): number for status, number in counts.items()},
            "largest": wave.largest[name],
        }
        for name, counts in sorted(wave.answers.items())
    }


if __name__ == "__main__":
    port, seconds, seed, key, link = sys.argv[1:]
    print(json.dumps(asyncio.run(attack(int(port), float(seconds), int(seed), key, link))))
