"""Every door reads a path segment alike: one table of inputs, asked at all of them."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from httpx import AsyncClient

from refract.cli.links.context import LinkCommandContext, UnknownLink
from refract.core.errors import RefractError
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.home.omnibox_parser import parse_input
from refract.identity.models import User
from refract.lists.addresses import check_addresses
from refract.lists.draft_owners import ListClient
from refract.reports.models import ReportReason
from refract.reports.schemas import ReportCreate
from refract.reports.service import file_report
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.conftest import make_settings
from tests.redirect.nodes import Place, open_place

pytestmark = on_sqlite
KIOSK, ROAD, CODED = (f"https://example.com/{name}" for name in ("kiosk", "road", "coded"))

TABLE = {
    "Kiosk": KIOSK,
    "KIOSK": KIOSK,
    "kiosk.": KIOSK,
    "kiosk).,": KIOSK,
    "k%69osk": KIOSK,
    "Kio\u017f\u212a": None,
    "kios\uff4b": None,
    "kiosk\u0301": None,
    "-kiosk": None,
    "kiosk-": None,
    "kiosk..x": None,
    "road_map": ROAD,
    "ROAD-MAP!": ROAD,
    "roadmap": None,
    "x" * 51: None,
    "{code}": CODED,
    "{code},": CODED,
    "{swapped}": None,
    "{hidden}": None,
}
"""Texts and their destinations. `{hidden}` is the id of a link with a random code."""


@dataclass
class World:
    """The program, a signed-in user, and what the doors need."""

    rt: Runtime
    client: AsyncClient
    place: Place
    wire: AsyncClient
    user: User
    headers: dict[str, str]
    destinations: dict[int, str]

    async def follow(self, address: str) -> str | None:
        """Return where an address of ours redirects to, without what was added behind it."""
        location = (await self.client.get(address)).headers.get("location")
        return next(
            (url for url in self.destinations.values() if (location or "").startswith(url)), None
        )


async def _ask_redirect(world: World, text: str) -> str | None:
    return await world.follow(f"/{quote(text, safe='%')}")


async def _ask_cached_redirect(world: World, text: str) -> str | None:
    path = f"/{quote(text, safe='%')}"
    answers: list[str | None] = [
        (await world.wire.get(path)).headers.get("location") for _ in range(2)
    ]
    assert answers[0] == answers[1], "the fast path answers like the other"
    return answers[0]


async def _ask_resolve(world: World, text: str) -> str | None:
    answer = await world.client.post("/api/v1/resolve", headers=world.headers, json={"path": text})
    location: str | None = answer.json()["location"]
    return location


async def _ask_omnibox(world: World, text: str) -> str | None:
    typed = text if parse_input(text).kind == "search" else f"/{text}"
    answer = await world.client.post("/app/omnibox", headers=world.headers, data={"q": typed})
    onward = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)
    return await world.follow(unescape(onward[1]) if onward else answer.headers["location"])


async def _ask_go(world: World, text: str) -> str | None:
    answer = await world.client.get(
        f"/app/go?{urlencode({'q': f'{text} more'})}", headers=world.headers
    )
    location = answer.headers["location"]
    return None if location.startswith("/app/search") else await world.follow(location)


async def _ask_list(world: World, text: str) -> str | None:
    url = f"{world.rt.settings.public_url}/{quote(text, safe='%')}"
    (found,) = await check_addresses(world.rt, ListClient(None, None, network=""), [url])
    return None if isinstance(found, RefractError) else world.destinations[found.link_id or 0]


async def _ask_command(world: World, text: str) -> str | None:
    context = LinkCommandContext(world.rt, world.user, make.who(world.user))
    try:
        async with world.rt.db.read() as session:
            return (await context.find_link(session, text)).destination
    except UnknownLink:
        return None


async def _ask_report(world: World, text: str) -> str | None:
    new = ReportCreate(target=text, reason=ReportReason.SPAM)
    async with world.rt.db.write() as session:
        report = await file_report(session, world.rt, "", new)
        return None if report is None else world.destinations[report.target_id]


DOORS: dict[str, Callable[[World, str], Awaitable[str | None]]] = {
    "redirect": _ask_redirect,
    "cached redirect": _ask_cached_redirect,
    "resolve": _ask_resolve,
    "omnibox": _ask_omnibox,
    "go": _ask_go,
    "list entry": _ask_list,
    "command": _ask_command,
    "report": _ask_report,
}


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "data", database_url=database, misses_per_minute=10_000)


@pytest.mark.parametrize("door", DOORS)
async def test_every_door_reads_a_segment_alike(
    rt: Runtime, client: AsyncClient, ada: User, door: str
) -> None:
    async with rt.db.write() as session:
        kiosk = await make.link(session, rt, ada, KIOSK, name="Kiosk")
        road = await make.link(session, rt, ada, ROAD, name="road-map")
        coded = await make.link(session, rt, ada, CODED)
        hidden = await make.link(session, rt, ada, "https://example.com/hidden")
        hidden.random_code = "0123456789ab"
        headers = by_cookie(rt, await make.cookie(session, rt, ada))
    links = (kiosk, road, coded, hidden)
    destinations = {link.id: link.destination for link in links}
    code = encode_base62(coded.id)
    known = {"code": code, "swapped": code.swapcase(), "hidden": encode_base62(hidden.id)}
    async with open_place(rt) as place, place.on_the_wire() as wire:
        world = World(rt, client, place, wire, ada, headers, destinations)
        answers = {text: await DOORS[door](world, text.format(**known)) for text in TABLE}
    assert answers == TABLE
