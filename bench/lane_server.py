"""The real lane, table and spool on uvicorn, with nothing behind them: `python -m bench.lane_server PORT SPOOL_DIRECTORY [NAMES]`.

Answers /s0 … /s9999 by redirects and everything else with 404. On the way out it prints how many redirects it answered.
"""

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import uvicorn

from refract.analytics.spool import Spool
from refract.redirect import answer
from refract.redirect.lane import Lane
from refract.redirect.table import Entry, Table
from refract.redirect.traffic import STATE, Traffic

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

FIRST_ID = 100_000_000_000_000_000


def destination(number: int) -> str:
    return f"https://example.com/article/{number}?ref=short"


class Application:
    """Lifespan as the product has it, and 404 for whatever the lane leaves over."""

    def __init__(self, root: Path, names: int) -> None:
        self.root = root
        self.names = names

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.live(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def live(self, scope: Message, receive: Receive, send: Send) -> None:
        await receive()
        spool = Spool(self.root, node="bench")
        table = Table(2 * self.names)
        for number in range(self.names):
            head = answer.head(302, destination(number).encode())
            table.fill(b"/s%d" % number, Entry(FIRST_ID + number, 1, head), table.now())
        traffic = Traffic(table, spool)
        scope["state"][STATE] = traffic
        traffic.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        traffic.stop()
        spool.close()
        print(f"answered={traffic.turn.answered} not_kept={spool.not_kept}", flush=True)
        await send({"type": "lifespan.shutdown.complete"})


def main() -> None:
    port, root, *rest = sys.argv[1:]
    uvicorn.run(
        Application(Path(root), int(rest[0]) if rest else 10_000),
        host="127.0.0.1",
        port=int(port),
        http=Lane,
        ws="none",
        loop="uvloop",
        lifespan="on",
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        backlog=4096,
    )


if __name__ == "__main__":
    main()
