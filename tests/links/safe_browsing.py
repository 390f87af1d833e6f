"""A fake Safe Browsing service with the real protocol on a real socket, which fails on demand."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

Mode = Literal["ok", "malware", "slow", "500", "garbage", "other shape", "hang up"]


@dataclass
class FakeSafeBrowsing:
    """A server that reports the URLs in `bad` in mode `ok`, and every URL in mode `malware`."""

    mode: Mode = "ok"
    bad: set[str] = field(default_factory=set)
    questions: list[list[str]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    url: str = ""
    before_answer: Callable[[str], Awaitable[None]] | None = None
    """Called with the first URL of a request, before the response is sent."""

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines[1:] if line)
                }
                body = await reader.readexactly(int(headers["content-length"]))
                if self.mode == "hang up":
                    break
                if self.mode == "slow":
                    await asyncio.sleep(30)
                status, text = self._respond(lines[0], headers, body)
                if self.before_answer is not None:
                    await self.before_answer(self.questions[-1][0])
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length:"
                    f" {len(text)}\r\n\r\n{text}".encode()
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _respond(self, first: str, headers: dict[str, str], body: bytes) -> tuple[str, str]:
        if not first.startswith("POST /v4/threatMatches:find "):
            return "404 Not Found", "{}"
        self.keys.append(headers.get("x-goog-api-key", ""))
        asked = _addresses(json.loads(body))
        self.questions.append(asked)
        if len(asked) > 500:
            return "400 Bad Request", json.dumps(
                {"error": {"code": 400, "status": "INVALID_ARGUMENT"}}
            )
        if self.mode == "500":
            return "500 Internal Server Error", "{}"
        if self.mode == "garbage":
            return "200 OK", "<html>not what you asked for"
        if self.mode == "other shape":
            return "200 OK", json.dumps({"matches": [{"nothing": "known"}]})
        found = [_match(url) for url in asked if self.mode == "malware" or url in self.bad]
        return "200 OK", json.dumps({"matches": found} if found else {})


def _addresses(question: Any) -> list[str]:
    """Return the requested URLs. Fails on what the real service would reject."""
    assert question["client"]["clientId"]
    info = question["threatInfo"]
    assert info["threatEntryTypes"] == ["URL"]
    assert "MALWARE" in info["threatTypes"]
    assert info["platformTypes"] == ["ANY_PLATFORM"]
    return [entry["url"] for entry in info["threatEntries"]]


def _match(url: str) -> dict[str, Any]:
    return {
        "threatType": "SOCIAL_ENGINEERING",
        "platformType": "ANY_PLATFORM",
        "threatEntryType": "URL",
        "threat": {"url": url},
        "cacheDuration": "300.000s",
    }


@asynccontextmanager
async def safe_browsing() -> AsyncIterator[FakeSafeBrowsing]:
    fake = FakeSafeBrowsing()
    running: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        await fake._answer(reader, writer)
        running.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()
