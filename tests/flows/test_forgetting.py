"""Two real processes: what one change says, both answer."""

from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.links import service
from refract.links.models import Link
from refract.links.safety.blocked_domains import block_domain, unblock_domain
from refract.links.schemas import LinkPatch
from tests import make
from tests.redirect.outside import Outside
from tests.serving import serving
from tests.waiting import PATIENCE, eventually_blocking

ASKED = 24
"""Connections a round: that one process gets none of them is as likely as 24 coins on one side."""


def answers(url: str) -> set[tuple[int, str | None]]:
    """Each request on a connection of its own, so that any process may take it."""
    found = set()
    parts = urlsplit(url)
    for _ in range(ASKED):
        with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)) as wire:
            wire.request("GET", parts.path, headers={"connection": "close"})
            answer = wire.getresponse()
            found.add((answer.status, answer.headers.get("location")))
            answer.read()
    return found


def _settles(url: str, wanted: tuple[int, str | None]) -> None:
    eventually_blocking(lambda: answers(url) == {wanted}, pause=0, explain=lambda: answers(url))


def test_a_change_reaches_every_process(database: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    outside = Outside(data, database_url=database)
    with serving(
        data, "--workers", "2", REFRACT_DATABASE_URL=database, REFRACT_MISSES_PER_MINUTE="unlimited"
    ) as server:
        url = f"{server.url}/x"
        _settles(url, (404, None))
        link = outside.link("https://one.example/", name="X")
        _settles(url, (302, "https://one.example/"))

        for change, wanted in _changes(outside, link):
            outside.write(change)
            _settles(url, wanted)


def _changes(outside: Outside, link: Link) -> list[tuple[Any, tuple[int, str | None]]]:
    who, first, second = (
        make.who(outside.owner),
        (302, "https://one.example/"),
        (302, "https://two.example/"),
    )

    async def edit(session: WriteSession, rt: Runtime) -> Any:
        checked = await make.checked_changes(rt, "https://two.example/")
        return await service.edit_link(
            session,
            make.space(rt),
            who,
            link.id,
            LinkPatch(destination="https://two.example/"),
            checked,
        )

    return [
        (
            lambda session, rt: service.disable_link(session, who, link.id, rt.clock.now()),
            (410, None),
        ),
        (lambda session, rt: service.enable_link(session, who, link.id, rt.clock.now()), first),
        (edit, second),
        (
            lambda session, rt: block_domain(
                session, "two.example", reason="", by=None, at=rt.clock.now()
            ),
            (410, None),
        ),
        (
            lambda session, rt: unblock_domain(session, "two.example", by=None, at=rt.clock.now()),
            second,
        ),
        (
            lambda session, rt: service.release_name(session, make.space(rt), who, link.id, "x"),
            (404, None),
        ),
        (lambda session, rt: service.add_name(session, make.space(rt), who, link.id, "x"), second),
        (
            lambda session, rt: service.delete_link(session, who, link.id, rt.clock.now()),
            (410, None),
        ),
    ]
