"""Flagged links show their preview before they redirect; only the redirect that follows is a click.

The finding: destinations that could not be checked, or that imitate another, redirected directly.
"""

import re
from html import unescape

import pytest
from httpx import ASGITransport, AsyncClient, Response
from sqlalchemy import select, update

from refract.app import WebNode
from refract.clicks.spool.reader import SpoolPosition, inspect_spool, read_batch
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.enums import FlagReason
from refract.links.models import Link
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListMaker
from refract.lists.models import ListEntry
from refract.redirect.responses import CONFIRMATION_SECONDS
from tests import make
from tests.client import on_sqlite

PAGE = {"Accept": "text/html"}


@pytest.fixture
async def link(rt: Runtime, ada: User) -> Link:
    async with rt.db.write() as session:
        made = await make.link(
            session, rt, ada, "https://one.example/docs", name="odd", forward_query=True
        )
        await session.execute(
            update(Link)
            .where(Link.id == made.id)
            .values(flagged=True, flag_reason=FlagReason.UNCHECKED)
        )
    rt.clock.advance(1)  # type: ignore[attr-defined]  # what has just changed is not cached yet
    return made


def _clicks(app: WebNode, target: int | None) -> int:
    """Return the number of clicks of a target in the spool."""
    assert app.engine is not None
    state, position, count = inspect_spool(app.engine.spool.directory), SpoolPosition(), 0
    while (batch := read_batch(state, position, 1 << 20)).next != position:
        count += sum(click.target == target for click in batch.clicks)
        position = batch.next
    return count


def _continue(response: Response) -> str:
    found = re.search(r'href="([^"]*continue=[^"]*)"', response.text)
    assert found is not None, response.text
    return unescape(found[1])


@on_sqlite
async def test_the_preview_comes_first_and_one_click_is_counted(
    client: AsyncClient, app: WebNode, link: Link
) -> None:
    first = await client.get("/odd", headers=PAGE)
    assert first.status_code == 200
    assert "one.example" in first.text
    assert "hasn’t been checked yet" in first.text
    assert _clicks(app, link.id) == 0

    second = await client.get(_continue(first))

    assert (second.status_code, second.headers["location"]) == (302, "https://one.example/docs")
    assert _clicks(app, link.id) == 1
    assert app.engine is not None
    assert app.engine.cache.paths == {}


@on_sqlite
@pytest.mark.parametrize("reason", FlagReason)
async def test_every_reason_has_its_words(
    client: AsyncClient, rt: Runtime, link: Link, reason: FlagReason
) -> None:
    async with rt.db.write() as session:
        await session.execute(update(Link).where(Link.id == link.id).values(flag_reason=reason))
    assert 'role="alert"' in (await client.get("/odd", headers=PAGE)).text


@on_sqlite
async def test_programs_and_head_get_the_preview_too(
    client: AsyncClient, app: WebNode, link: Link
) -> None:
    told = await client.get("/odd")
    assert told.status_code == 200
    assert (told.json()["destination"], told.json()["flag_reason"]) == (
        "https://one.example/docs",
        "unchecked",
    )
    head = await client.head("/odd", headers={"User-Agent": "Googlebot/2.1"})
    assert (head.status_code, "location" in head.headers) == (200, False)
    assert (await client.get(told.json()["continue_url"])).status_code == 302
    assert _clicks(app, link.id) == 1


@on_sqlite
async def test_path_and_query_go_along(client: AsyncClient, link: Link) -> None:
    first = await client.get("/odd/setup?v=2&utm_source=mail", headers=PAGE)

    second = await client.get(_continue(first))

    assert second.headers["location"] == "https://one.example/docs/setup?v=2&utm_source=mail"


@on_sqlite
async def test_a_confirmation_is_for_one_network_one_link_and_a_while(
    client: AsyncClient, rt: Runtime, app: WebNode, ada: User, link: Link
) -> None:
    async with rt.db.write() as session:
        other = await make.link(session, rt, ada, "https://two.example/", name="other")
        await session.execute(update(Link).where(Link.id == other.id).values(flagged=True))
    token = _continue(await client.get("/odd", headers=PAGE)).partition("continue=")[2]

    assert (await client.get(f"/other?continue={token}")).status_code == 200
    transport = ASGITransport(app, client=("203.0.113.9", 4711))
    async with AsyncClient(transport=transport, base_url=rt.settings.public_url) as elsewhere:
        assert (await elsewhere.get(f"/odd?continue={token}")).status_code == 200
    for made_up in ("1", "0" * 24, ""):
        assert (await client.get(f"/odd?continue={made_up}")).status_code == 200
    rt.clock.advance(CONFIRMATION_SECONDS * 2)  # type: ignore[attr-defined]
    assert (await client.get(f"/odd?continue={token}")).status_code == 200


@on_sqlite
async def test_the_parameter_means_nothing_to_links_that_are_not_flagged(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, "https://two.example/", name="plain", forward_query=True)
    answer = await client.get("/plain?continue=" + "0" * 24)
    assert answer.headers["location"] == "https://two.example/?continue=" + "0" * 24


@on_sqlite
async def test_a_flagged_entry_of_a_list_is_previewed_too(
    client: AsyncClient, rt: Runtime, app: WebNode, ada: User
) -> None:
    async with rt.db.write() as session:
        made = await make.list_of(
            session, rt, ListMaker(ada.id), "https://two.example/", title="Reading"
        )
        slug = (await lists.publish_list(session, make.space(rt), ListMaker(ada.id), made.id)).slug
        entry_id = await session.scalar(select(ListEntry.id).where(ListEntry.list_id == made.id))
        await session.execute(
            update(ListEntry)
            .where(ListEntry.id == entry_id)
            .values(flagged=True, flag_reason="lookalike")
        )
    first = await client.get(f"/{slug}/1", headers=PAGE)
    assert first.status_code == 200
    assert "imitate" in first.text
    assert f">go.test/{slug}/1<" in first.text
    assert "/1/1" not in first.text
    assert ".qr" not in first.text  # an entry has none
    told = (await client.get(f"/{slug}/1")).json()
    assert told["short_url"] == f"http://go.test/{slug}/1"
    assert _clicks(app, entry_id) == 0

    second = await client.get(_continue(first))

    assert (second.status_code, second.headers["location"]) == (302, "https://two.example/")
    assert _clicks(app, entry_id) == 1


@on_sqlite
async def test_a_look_alike_is_flagged_when_it_is_made(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        made = await make.link(
            session, rt, ada, "https://pаypal.example/login", name="pay"
        )  # a Cyrillic а
    assert (made.flagged, made.flag_reason) == (True, "lookalike")

    page = await client.get("/pay", headers=PAGE)

    assert page.status_code == 200
    assert "xn--pypal-4ve.example" in page.text
    assert "pаypal" not in page.text
