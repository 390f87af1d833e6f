"""The whole program on a real port, for clients that were made for other systems."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import Scope, User
from refract.server.uvicorn import GracefulServer
from tests import make
from tests.conftest import make_settings
from tests.people import ada, bob, root
from tests.waiting import PATIENCE
from tools import foreign_clients, packages

__all__ = ["ada", "bob", "root"]

CLIENTS = Path(__file__).with_name("clients")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        listening.setblocking(False)
        yield listening


@pytest.fixture
def settings(database: str, tmp_path: Path, listener: socket.socket) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        base_url=f"http://127.0.0.1:{listener.getsockname()[1]}",
        compat=("shlink", "linkding", "yourls", "kutt", "karakeep"),
        creates_per_hour="unlimited",
    )


@pytest.fixture
async def address(app: WebNode, listener: socket.socket) -> AsyncIterator[str]:
    """The address of a server on `rt`."""
    config = uvicorn.Config(
        app,
        http=app.protocol_class,
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=False,
        server_header=False,
    )
    server = GracefulServer(config, app)
    accepting = asyncio.Event()

    async def ready() -> None:
        accepting.set()

    running = asyncio.create_task(server.run_until_stopped(listener, ready))
    await accepting.wait()
    yield app.rt.settings.public_url
    server.stop()
    await running


@pytest.fixture
async def http(address: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of its own, without a key."""
    async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=PATIENCE) as client:
        yield client


async def _key(rt: Runtime, user: User, *scopes: Scope) -> str:
    async with rt.db.write() as session:
        return await make.key(session, rt, user, *scopes)


@pytest.fixture
async def key(rt: Runtime, ada: User) -> str:
    return await _key(rt, ada)


@pytest.fixture
async def read_key(rt: Runtime, ada: User) -> str:
    return await _key(rt, ada, Scope.READ)


@pytest.fixture
async def other_key(rt: Runtime, bob: User) -> str:
    return await _key(rt, bob)


@pytest.fixture
async def admin_key(rt: Runtime, root: User) -> str:
    return await _key(rt, root, Scope.READ, Scope.WRITE, Scope.ADMIN)


async def run_client(script: str, *arguments: str) -> dict[str, Any]:
    """Run a script of real client calls; return what each named step got."""
    if script.endswith(".mjs"):
        node = packages.find("node")
        if node is None:
            pytest.skip("absent service: node")
        modules = await asyncio.to_thread(foreign_clients.find_modules)
        command = [node, str(CLIENTS / script), str(modules)]
    else:
        python = await asyncio.to_thread(foreign_clients.find_python)
        command = [str(python), str(CLIENTS / script)]
    process = await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"]},
    )
    out, errors = await asyncio.wait_for(process.communicate(), 2 * PATIENCE)
    assert process.returncode == 0, errors.decode()
    steps: dict[str, Any] = json.loads(out)
    return steps
