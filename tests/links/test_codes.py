"""Codes that cannot be guessed.

Security finding 8: codes are derived from time, worker and sequence, so an unlisted link was found
in 434 tries.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.ids import decode_base62, encode_base62
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.links import export, queries, service
from refract.links.access import LinkCaller
from refract.links.imports.importer import LinkImporter
from refract.links.imports.rows import Candidate
from refract.links.models import Link
from refract.names import service as names
from refract.names.grammar import RANDOM_CODE_LENGTH, is_random_code
from refract.names.models import Name
from refract.names.queries import find_similar_names
from tests import make
from tests.client import by_cookie, client_of
from tests.conftest import make_settings
from tests.people import Headers


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "data", database_url=database, codes="random")


@pytest.fixture
async def client(app: WebNode) -> AsyncIterator[AsyncClient]:
    async with client_of(app) as asking:
        yield asking


async def _new(client: AsyncClient, headers: Headers, **fields: object) -> dict[str, Any]:
    made = await client.post(
        "/api/v1/links", headers=headers, json={"destination": "https://example.com/", **fields}
    )
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


async def test_a_new_link_has_a_random_code_and_no_other(
    client: AsyncClient, as_ada: Headers
) -> None:
    link = await _new(client, as_ada)
    old = encode_base62(int(link["id"]))

    assert is_random_code(link["code"])
    assert decode_base62(link["code"]) is None  # never confused with a code derived from an id
    assert (link["names"], link["short_url"]) == ([], f"http://go.test/{link['code']}")
    for path in (
        link["code"],
        link["code"].upper(),
        f"{link['code']}+",
        f"{link['code']}.qr",
        f"{link['code']}.",
    ):
        assert (await client.get(f"/{path}")).status_code in (200, 302), path
    for path in (old, f"{old}+", f"{old}.qr", f"{old}."):
        assert (await client.get(f"/{path}")).status_code == 404, path
    said = (await client.post("/api/v1/resolve", headers=as_ada, json={"path": old})).json()
    assert said["outcome"] == "not_found"
    said = (
        await client.post("/api/v1/resolve", headers=as_ada, json={"path": link["code"]})
    ).json()
    assert (said["outcome"], said["link_id"]) == ("redirect", link["id"])
    assert said["why"].startswith("The code /")


async def test_the_id_behind_a_random_code_is_nobodys_name(
    client: AsyncClient, rt: Runtime, clock: ManualClock, ada: User, as_ada: Headers
) -> None:
    """Reporting it as taken revealed which ids exist, and so when links were created."""
    link = await _new(client, as_ada)
    async with rt.db.write() as session:
        old = await make.link(session, rt, ada)
        old.random_code = None  # from before the setting
    clock.advance(120)

    for name, free in (
        (encode_base62(int(link["id"])), True),
        (encode_base62(int(link["id"])).lower(), True),
        (encode_base62(old.id), False),
    ):
        assert (await client.get(f"/api/v1/names/{name}")).json()["available"] is free, name
    named = await _new(client, as_ada, names=[encode_base62(int(link["id"]))])
    assert (await client.get(f"/{encode_base62(int(link['id']))}")).status_code == 302
    assert named["names"] == [encode_base62(int(link["id"]))]


async def test_names_and_a_random_code_live_side_by_side(
    client: AsyncClient, as_ada: Headers
) -> None:
    link = await _new(client, as_ada, names=["handbook"])
    assert (link["names"], link["short_url"]) == (["handbook"], "http://go.test/handbook")
    assert (await client.get(f"/{link['code']}")).status_code == 302

    released = await client.delete(
        f"/api/v1/links/{link['id']}/names/{link['code']}", headers=as_ada
    )
    assert (released.status_code, released.json()["code"]) == (404, "NAME_NOT_FOUND")
    assert (await client.get(f"/{link['code']}")).status_code == 302


async def test_a_random_code_is_never_suggested(
    rt: Runtime, client: AsyncClient, ada: User, as_ada: Headers
) -> None:
    code = (await _new(client, as_ada, visibility="public"))["code"]
    typed = code[:-1] + ("1" if code[-1] != "1" else "2")

    async with rt.db.write() as session:
        assert await find_similar_names(session, typed) == []
        cookie = by_cookie(rt, await make.cookie(session, rt, ada))
    assert (await client.get(f"/app/suggest?q={code[:6]}", headers=cookie)).json()[1] == []
    assert (await client.get(f"/{typed}", headers=as_ada)).json()["suggestions"] == []


async def test_bulk_gives_each_its_own(rt: Runtime, client: AsyncClient, as_ada: Headers) -> None:
    rows = [{"destination": f"https://example.com/{number}"} for number in range(40)]
    made = (await client.post("/api/v1/links/bulk", headers=as_ada, json={"links": rows})).json()

    codes = {row["link"]["code"] for row in made["results"]}
    assert len(codes) == 40
    assert all(map(is_random_code, codes))
    async with rt.db.read() as session:
        assert (
            await session.scalar(select(func.count()).select_from(Name).where(Name.generated)) == 40
        )


async def test_a_code_that_is_taken_is_drawn_again(rt: Runtime, ada: User) -> None:
    taken = "0" * RANDOM_CODE_LENGTH
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name=taken)
        codes = await names.assign_codes(session, make.space(rt), {41: taken, 42: None})

    assert set(codes) == {41, 42}
    assert taken not in codes.values()
    assert len(set(codes.values())) == 2


async def test_exports_show_it_and_imports_keep_it(
    rt: Runtime, client: AsyncClient, ada: User, as_ada: Headers
) -> None:
    link = await _new(client, as_ada, visibility="signed-in")
    async with rt.db.read() as session:
        card = await queries.load_card(session, await session.get_one(Link, int(link["id"])))
    record = json.loads(json.dumps(export.build_record(card, rt.clock.now())))
    assert (record["code"], record["visibility"]) == (link["code"], "signed-in")
    async with rt.db.write() as session:
        await service.delete_link(session, LinkCaller(ada.id), int(link["id"]), rt.clock.now())
        await service.purge_links(session, rt.clock.now(), rt.clock.now() - rt.clock.now())
        gone = await session.scalar(select(func.count()).select_from(Name))
    assert gone == 0

    number, fresh = (
        int(link["id"]) - (1 << 22),
        {"destination": "https://example.com/", "visibility": "signed-in"},
    )
    bring = LinkImporter(rt, make.space(rt), ada, keep_ids=True)
    (result,) = await bring.import_batch([Candidate("item 1", fresh, number, record["code"])])
    assert (result.outcome, result.remarks) == ("created", ())
    async with rt.db.read() as session:
        kept = await session.get_one(Link, number)
    assert (kept.code, kept.effective_visibility) == (link["code"], "signed-in")
    assert (await client.get(f"/{encode_base62(number)}")).status_code == 404


async def test_links_from_before_keep_their_codes(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    random_codes, rt.settings = rt.settings, rt.settings.model_copy(update={"codes": "snowflake"})
    async with rt.db.write() as session:
        old = await make.link(session, rt, ada)
    rt.settings = random_codes

    assert old.code == encode_base62(old.id)
    assert (await client.get(f"/{old.code}")).status_code == 302
