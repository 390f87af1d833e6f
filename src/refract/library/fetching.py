"""From an address to a page that was read: fetched by the one door to foreign hosts, parsed in a process of its own."""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

import structlog

import refract
from refract.core.net import Fetcher, FetchError
from refract.core.runtime import Runtime
from refract.library.enrich.material import Extracted
from refract.library.extracting import HEAD, as_extracted, packed

FETCH_SECONDS = 10.0
EXTRACT_SECONDS = 10.0
LONGEST_HTML = 3_000_000
MOST_ANSWER = 64 * 1024 * 1024


class Unreadable(FetchError):
    """The page could not be read."""

    kind = "unreadable"


class Reader:
    """Fetches and reads pages. One per process; it starts its extracting process with the first page and ends it when it is closed."""

    def __init__(self, rt: Runtime) -> None:
        self._fetcher = Fetcher.from_settings(rt.settings)
        self._child: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._log = structlog.get_logger("refract.library")

    async def read(self, url: str) -> Extracted:
        """The page at this address, or the `FetchError` that says why not."""
        page = await self._fetcher.fetch(url, budget=FETCH_SECONDS)
        return await self.extract(page.text[:LONGEST_HTML], page.url)

    async def extract(self, html: str, url: str) -> Extracted:
        """Read HTML within the time there is for it; a page that needs more is `Unreadable`."""
        async with self._turn:
            try:
                async with asyncio.timeout(EXTRACT_SECONDS):
                    answer = await self._ask(packed({"html": html, "url": url}))
            except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError) as wrong:
                await self._end()
                raise Unreadable(f"{url}: {type(wrong).__name__}") from wrong
            except asyncio.CancelledError:
                await self._end()  # its answer would be taken for the next page's
                raise
        if "page" not in answer:
            raise Unreadable(f"{url}: {answer.get('error')}")
        return as_extracted(answer["page"])

    async def close(self) -> None:
        await self._end()

    async def _ask(self, question: bytes) -> dict[str, dict[str, object]]:
        child = self._child or await self._begin()
        if child.stdin is None or child.stdout is None:
            raise OSError
        child.stdin.write(question)
        await child.stdin.drain()
        (size,) = HEAD.unpack(await child.stdout.readexactly(HEAD.size))
        if size > MOST_ANSWER:
            raise ValueError
        answer: dict[str, dict[str, object]] = json.loads(await child.stdout.readexactly(size))
        return answer

    async def _begin(self) -> asyncio.subprocess.Process:
        self._child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "refract.library.extracting",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"PYTHONPATH": str(Path(refract.__file__).parents[1]), "PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"},
        )
        return self._child

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
            transport = getattr(child, "_transport", None)
            if transport is not None:
                transport.close()
