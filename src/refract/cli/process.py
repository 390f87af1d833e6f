"""One serving process, whether alone or one of several. It loads no more than its role needs, and nothing of the command line."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import uvicorn

from refract.cli.handover import Handover
from refract.cli.server import GracefulServer
from refract.core.errors import Unavailable
from refract.core.runtime import Runtime, running
from refract.core.settings import Role, Settings
from refract.migrations.state import SchemaCheck
from refract.node import Node
from refract.web.siblings import Siblings


async def serve_process(
    settings: Settings,
    listener: socket.socket,
    ready: Callable[[], Awaitable[None]],
    lifeline: int | None = None,
    siblings: Siblings | None = None,
    handover: Handover | None = None,
) -> None:
    """Serve until a signal, until the parent is gone, or until `handover` has found a successor."""
    async with running(settings, patient=True, makes_ids=settings.role not in ("redirect", "ingest")) as rt:
        await _demand_schema(rt)
        application = load(settings.role)(rt)
        config = uvicorn.Config(
            application,
            http=application.protocol,
            ws="none",
            loop="uvloop",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=4096,
        )
        application.vitals.siblings = siblings
        async with application.background(), siblings.telling(rt.metrics.render) if siblings is not None else nullcontext():
            server = GracefulServer(config, application)
            if lifeline is not None:
                _stop_with_parent(server, lifeline)
            if handover is not None:
                server.on_reload = lambda: handover.begin(server.hand_over)
            await server.run_until_stopped(listener, ready, shared=lifeline is not None)


async def _demand_schema(rt: Runtime) -> None:
    """Raise if schema and code do not fit. While the database is away nobody knows; readiness asks again."""
    check = SchemaCheck()
    with contextlib.suppress(Unavailable):
        await check.probe(rt)
    if check.problem is not None:
        raise check.problem


def _stop_with_parent(server: GracefulServer, lifeline: int) -> None:
    """Heard once: the end of a pipe stays readable."""
    loop = asyncio.get_running_loop()

    def parent_is_gone() -> None:
        loop.remove_reader(lifeline)
        server.stop()

    loop.add_reader(lifeline, parent_is_gone)


def load(role: Role) -> type[Node]:
    """What a process in this role is, with all that it needs to answer first."""
    if role in ("worker", "ingest"):
        return Node
    from refract.redirect import alone, lane  # noqa: F401, PLC0415 - not in every role

    if role == "redirect":
        return Node
    from refract.opening import Opening  # noqa: PLC0415 - not in every role

    return Opening
