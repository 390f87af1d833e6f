"""Lazy start: links are served immediately, everything else once the web app is loaded."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from refract.core.runtime import Runtime
from refract.server import lazy
from refract.server.lazy import LazyWebNode
from tests import make
from tests.client import by_key, client_of

OTHERS = {"/": 200, "/api/v1/links": 200, "/unknown": 404, "/notes.qr": 200, "/notes+": 200}
"""Paths that are not redirects, and their final status."""


@pytest.fixture
async def key(rt: Runtime) -> str:
    async with rt.db.write() as session:
        owner = await make.person(session, rt)
        await make.link(session, rt, owner, "https://example.com/notes", names=["notes"])
        return await make.key(session, rt, owner)


class Pieces:
    """Modules to load, endless until `enough` is set."""

    def __init__(self) -> None:
        self.enough = False

    def __iter__(self) -> Iterator[str]:
        while not self.enough:
            yield "refract.app"


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Pieces:
    made = Pieces()
    monkeypatch.setattr(lazy, "LAZY_MODULES", made)
    return made


@pytest.fixture
async def opens(rt: Runtime, key: str, pieces: Pieces) -> AsyncIterator[LazyWebNode]:
    node = LazyWebNode(rt)
    async with node.run_background():
        yield node


async def test_a_link_is_followed_and_counted_while_the_rest_is_being_loaded(
    opens: LazyWebNode,
) -> None:
    async with client_of(opens) as client:
        answers = [
            await client.get("/notes"),
            await client.head("/Notes"),
            await client.get("/health"),
            await client.get("/metrics"),
        ]
    assert [answer.status_code for answer in answers] == [302, 302, 200, 200]
    assert answers[0].headers["location"] == "https://example.com/notes"
    assert opens.engine.spool.written == 1


async def test_whatever_is_no_redirect_waits_and_gets_the_answer_of_the_whole(
    opens: LazyWebNode, key: str, pieces: Pieces
) -> None:
    async with client_of(opens) as client:
        asked = {
            path: asyncio.create_task(client.get(path, headers=by_key(key))) for path in OTHERS
        }
        asked["by POST"] = asyncio.create_task(client.post("/notes"))
        await asyncio.sleep(0.3)
        assert [path for path, answer in asked.items() if answer.done()] == []
        assert (await client.get("/notes")).status_code == 302
        ready = await client.get("/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "starting")

        pieces.enough = True

        found = {path: (await answer).status_code for path, answer in asked.items()}
        assert found == OTHERS | {"by POST": 405}
        assert (await client.get("/notes")).status_code == 302
        await opens.wait_until_complete()
        assert (await client.get("/ready")).json()["status"] == "ready"


async def test_what_cannot_be_loaded_is_said_to_whoever_waits_for_the_whole(
    opens: LazyWebNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> None:
        raise ImportError

    monkeypatch.setattr(lazy, "import_module", broken)
    with pytest.raises(ImportError):
        await opens.wait_until_complete()
