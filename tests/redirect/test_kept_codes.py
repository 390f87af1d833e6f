"""Codes that imports keep: exact addresses, found first, through every cache."""

from collections.abc import Sequence

import pytest
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.db.session import ReadSession
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.imports import Candidate, LinkImporter, LinkImportOutcome, LinkImportResult
from refract.links.models import Link, LinkTotals
from refract.names.grammar import build_path, build_stem, join_code, validate_code
from refract.redirect.engine import warm_up
from refract.redirect.resolver import LinkView, parse_path
from tests import make
from tests.redirect.nodes import Place, nodes, settings

__all__ = ["nodes", "settings"]


async def bring(
    rt: Runtime, owner: User, codes: Sequence[str], domain: str | None = None
) -> list[LinkImportResult]:
    """Import a link for each code, whose destination tells the code."""
    rows = [
        Candidate(
            f"row {number}",
            {"destination": to(number), "domain": domain},
            codes=(code,),
        )
        for number, code in enumerate(codes)
    ]
    importer = LinkImporter(rt, make.space(rt), owner)
    return await importer.import_batch(rows)


def to(number: int) -> str:
    return f"https://old.example/{number}"


async def link_of(session: ReadSession, destination: str) -> Link:
    return (await session.scalars(select(Link).where(Link.destination == destination))).one()


async def hear(nodes: Sequence[Place]) -> None:
    for place in nodes:
        await place.engine.invalidator.poll()


async def follow(place: Place, path: str, host: str = "go.test") -> str | int:
    answer = await place.get(f"http://{host}/{path}")
    location: str | None = answer.headers.get("location")
    return location or answer.status_code


async def test_every_old_address_leads_where_it_did(
    rt: Runtime, ada: User, nodes: list[Place]
) -> None:
    codes = ["ab", "aB", "Ab", "AB", "a.b", "promo/2024/Spring", "docs", "café", "50%", "v1.qr"]
    paths = ["ab", "aB", "Ab", "AB", "a.b", "promo/2024/Spring", "docs", "caf%C3%A9", "50%25"]
    for place in nodes:
        assert {await follow(place, path) for path in (*paths, "v1.qr")} == {404}

    results = await bring(rt, ada, codes)
    await hear(nodes)

    assert {result.outcome for result in results} == {LinkImportOutcome.CREATED}
    for place in nodes:
        for _ in range(2):  # from the database, then from memory
            found = [await follow(place, path) for path in (*paths, "v1.qr")]
            assert found == [to(number) for number in range(len(codes))]


async def test_other_spellings_lead_nowhere(rt: Runtime, ada: User, nodes: list[Place]) -> None:
    await bring(rt, ada, ["a.b", "promo/Spring"])
    await hear(nodes)

    for path in ("A.b", "a.B", "promo/spring", "promo", "promo/Spring/x", "a.b/x/y"):
        assert await follow(nodes[0], path) == (to(0) + "/x/y" if path == "a.b/x/y" else 404)


async def test_a_kept_code_takes_its_address_from_a_name_of_the_same_owner_at_once(
    rt: Runtime, clock: ManualClock, ada: User, nodes: list[Place]
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, "https://example.com/mine", names=["ab", "docs-x"])
    clock.advance(1)
    await hear(nodes)
    clock.advance(1)
    for place in nodes:
        assert await follow(place, "aB") == "https://example.com/mine"
        assert await follow(place, "docs-x/Old") == "https://example.com/mine/Old"
        assert b"/aB" in place.cached

    await bring(rt, ada, ["aB", "docs-x/Old"])
    await hear(nodes)

    for place in nodes:
        assert await follow(place, "aB") == to(0)
        assert await follow(place, "docs-x/Old") == to(1)
        assert await follow(place, "ab") == "https://example.com/mine"
        assert await follow(place, "docs-x/old") == "https://example.com/mine/old"


async def test_an_edit_a_deletion_and_a_release_reach_every_process(
    rt: Runtime, ada: User, nodes: list[Place]
) -> None:
    await bring(rt, ada, ["a/B"])
    await hear(nodes)
    assert [await follow(place, "a/B") for place in nodes] == [to(0)] * 2
    caller = make.who(ada)
    async with rt.db.read() as session:
        link = await link_of(session, to(0))

    async with rt.db.write() as session:
        await service.disable_link(session, caller, link.id, rt.clock.now())
    await hear(nodes)
    assert [await follow(place, "a/B") for place in nodes] == [410] * 2

    async with rt.db.write() as session:
        await service.enable_link(session, caller, link.id, rt.clock.now())
        await service.release_name(session, make.space(rt), caller, link.id, "a/B")
    await hear(nodes)
    assert [await follow(place, "a/B") for place in nodes] == [404] * 2
    assert await follow(nodes[1], encode_base62(link.id)) == to(0)


async def test_codes_belong_to_their_domain(rt: Runtime, ada: User, nodes: list[Place]) -> None:
    async with rt.db.write() as session:
        await make.domain(session, rt)
    await bring(rt, ada, ["x.Y", "sho.rt/x.Y"])
    await bring(rt, ada, ["none", "x.Y"], "sho.rt")
    await hear(nodes)

    for place in nodes:
        assert await follow(place, "x.Y") == to(0)
        assert await follow(place, "sho.rt/x.Y") == to(1)
        assert await follow(place, "x.Y", "sho.rt") == to(1)
        assert await follow(place, "sho.rt/x.Y", "sho.rt") == 404


async def test_a_new_process_warms_up_kept_codes(
    rt: Runtime, clock: ManualClock, ada: User, nodes: list[Place]
) -> None:
    await bring(rt, ada, ["a b/Ü"])
    await hear(nodes)
    async with rt.db.write() as session:
        link = await link_of(session, to(0))
        session.add(LinkTotals(link_id=link.id, total_clicks=5, bot_clicks=0))
    place = nodes[0]
    place.engine.cache.invalidate_all()
    clock.advance(1)

    assert await warm_up(place.engine, place.reader, 10) == 1
    assert place.cached == {b"/a%20b/%C3%9C"}
    assert await follow(place, "a%20b/%C3%9C") == to(0)


async def test_without_kept_codes_impossible_names_need_no_query(
    rt: Runtime, ada: User, nodes: list[Place]
) -> None:
    place = nodes[0]
    asked = len(place.reader.asked)
    assert await follow(place, "wp-login.php/x") == 404
    assert len(place.reader.asked) == asked

    await bring(rt, ada, ["x.y"])
    assert await follow(place, "wp-login.php/x") == 404
    assert len(place.reader.asked) > asked
    asked = len(place.reader.asked)
    assert await follow(place, "wp-login.php/x") == 404
    assert len(place.reader.asked) == asked  # remembered as missing


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
async def test_kept_codes_are_shared_by_redis(
    rt: Runtime, ada: User, redis_server: object, nodes: list[Place]
) -> None:
    await bring(rt, ada, ["aB", "Ab", "a/b", "x.y"])
    await hear(nodes)
    assert await follow(nodes[1], "x.y") == to(3)  # it knows the epoch of Redis from now on
    found = [await follow(nodes[0], path) for path in ("aB", "Ab", "a/b")]

    assert found == [await follow(nodes[1], path) for path in ("aB", "Ab", "a/b")]
    assert found == [to(0), to(1), to(2)]
    assert nodes[1].engine.redis_cache is not None
    assert nodes[1].engine.redis_cache.hits == 3


@pytest.mark.parametrize(
    "path", ["name", "name+", "name.qr", "name.PNG", "name.rss", "name.Json", "name.md"]
)
def test_the_stem_is_the_name_that_a_path_is_read_as(path: str) -> None:
    assert build_stem(join_code("", path)) == parse_path(b"/" + path.encode()).name
    assert build_stem(join_code("", f"{path}/more")) == "name"
    assert (path == "name") is (parse_path(b"/" + path.encode()).view is LinkView.FOLLOW)


def test_the_path_of_a_code_is_read_as_this_code() -> None:
    for code in ("a b", "ü/ß", "50%", "a+b", "x;y,z", "(1)!*'"):
        text = validate_code(code)
        assert parse_path(build_path(text).encode()).path == code
