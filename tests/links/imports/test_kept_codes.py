"""Which codes an import may keep, and how names and codes rule each other out."""

import asyncio
import io
import json
from collections.abc import Sequence

import pytest
from sqlalchemy import select

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.export import LinkExportFormat, LinkExportWriter, build_record, iter_card_pages
from refract.links.imports import (
    LinkImporter,
    LinkImportOutcome,
    LinkImportResult,
    NameConflictPolicy,
    open_link_file,
)
from refract.links.models import Link
from refract.links.queries.links import resolve_name
from refract.names.enums import NameTarget
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.names.grammar import validate_code
from refract.names.models import Name
from refract.names.queries import find_rivals
from refract.names.service import check_availability, claim_names_for
from tests import make
from tests.links.imports.test_importer import forget_links


async def bring(
    rt: Runtime,
    owner: User,
    *codes: str,
    conflict: NameConflictPolicy = NameConflictPolicy.SKIP,
    dry_run: bool = False,
) -> list[LinkImportResult]:
    """Import codes of Shlink, each with a destination of its own."""
    links = [{"shortCode": code, "longUrl": f"https://old.example/?{code}"} for code in codes]
    rows = open_link_file(io.BytesIO(json.dumps(links).encode()), rt.clock.now())
    importer = LinkImporter(rt, make.space(rt), owner, conflict=conflict, dry_run=dry_run)
    return await importer.import_batch(list(rows))


async def texts(rt: Runtime) -> set[str]:
    async with rt.db.read() as session:
        return set(await session.scalars(select(Name.name)))


def outcomes(results: Sequence[LinkImportResult]) -> list[LinkImportOutcome]:
    return [result.outcome for result in results]


CREATED, SKIPPED = LinkImportOutcome.CREATED, LinkImportOutcome.SKIPPED
EXISTS, REFUSED = LinkImportOutcome.EXISTS, LinkImportOutcome.REFUSED


async def test_codes_become_names_where_they_can_and_are_kept_where_not(
    rt: Runtime, ada: User
) -> None:
    results = await bring(rt, ada, "ab", "aB", "AB", "a.b", "x/y", "help")

    assert outcomes(results) == [CREATED] * 6
    assert await texts(rt) == {"ab", "=/aB", "=/AB", "=/a.b", "=/x/y", "=/help"}
    assert [name for result in results for name in result.names] == [
        *("ab", "=/aB", "=/AB", "=/a.b", "=/x/y", "=/help")
    ]


async def test_an_import_that_is_repeated_or_tried_changes_nothing(rt: Runtime, ada: User) -> None:
    codes = ("Ab", "aB", "a.b")
    assert outcomes(await bring(rt, ada, *codes, dry_run=True)) == [CREATED] * 3
    assert await texts(rt) == set()

    await bring(rt, ada, *codes)
    assert outcomes(await bring(rt, ada, *codes)) == [EXISTS] * 3
    assert await texts(rt) == {"Ab", "=/aB", "=/a.b"}


async def test_the_same_code_twice_in_a_file_is_kept_once(rt: Runtime, ada: User) -> None:
    results = await bring(rt, ada, "ab", "ab", "aB", "aB", "a/b", "a/b")

    assert outcomes(results) == [CREATED, EXISTS] * 3
    assert len(await texts(rt)) == 3


@pytest.mark.parametrize(
    "code",
    ["road_map", "ROAD-MAP", "Road-Map/x", "road-map.qr", "road-map+", "road-map.JSON", "road-map!",
     "road-map.rss/1", "kept", "KEPT/x"],
)  # fmt: skip
async def test_a_spelling_or_subpath_of_another_persons_name_is_refused(
    rt: Runtime, ada: User, bob: User, code: str
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, names=["Road-Map"])
    await bring(rt, ada, "help", "Kept", "kepT")
    before = await texts(rt)

    (result,) = await bring(rt, bob, code)

    assert result.outcome is SKIPPED
    assert result.why == SlugTaken(name=code).message
    assert await texts(rt) == before


@pytest.mark.parametrize("name", ["ab", "aB", "AB", "docs-x", "DOCS-X"])
async def test_a_new_name_does_not_take_over_kept_codes_of_another_person(
    rt: Runtime, ada: User, bob: User, name: str
) -> None:
    await bring(rt, ada, "ab", "aB", "docs-x/A")
    async with rt.db.write() as session:
        found = select(Link).where(Link.destination == "https://old.example/?ab")
        link = (await session.scalars(found)).one()
        await service.release_name(session, make.space(rt), make.who(ada), link.id, "ab")

    with pytest.raises(SlugTaken):
        async with rt.db.write() as session:
            await make.link(session, rt, bob, names=[name])
    async with rt.db.read() as session:
        available = await check_availability(session, make.space(rt), name, NameTarget.LINK)
    assert not available.available


async def test_the_owner_of_kept_codes_may_use_their_other_spellings(
    rt: Runtime, ada: User
) -> None:
    await bring(rt, ada, "a.b", "x/Y", "ab", "aB")

    async with rt.db.write() as session:
        await make.link(session, rt, ada, names=["a"])
        await make.link(session, rt, ada, names=["x"])
    with pytest.raises(SlugTaken):
        async with rt.db.write() as session:
            await make.link(session, rt, ada, names=["Ab"])
    assert {"a", "x"} < await texts(rt)


async def test_own_names_that_are_spelled_alike_stay(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, "https://example.com/", names=["Plan"])

    assert outcomes(await bring(rt, ada, "Plan", "plan")) == [SKIPPED, CREATED]
    assert await texts(rt) == {"Plan", "=/plan"}
    (renamed,) = await bring(rt, ada, "Plan", conflict=NameConflictPolicy.RENAME)
    assert list(renamed.names) == ["Plan-2"]


async def test_a_name_of_another_person_is_renamed_on_request(
    rt: Runtime, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, names=["Plan"])

    (renamed,) = await bring(rt, bob, "plan", conflict=NameConflictPolicy.RENAME)

    assert (renamed.outcome, list(renamed.names)) == (CREATED, ["plan-2"])


async def test_lists_keep_their_addresses(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await claim_names_for(session, make.space(rt), NameTarget.LIST, 7, ["reading"])

    results = await bring(rt, ada, "Reading", "reading/1", "reading.rss")

    assert outcomes(results) == [SKIPPED] * 3


@pytest.mark.parametrize(
    "code",
    ["api", "API/x", "app", "robots.txt", "robots.txt/x", "static/a.js", ".well-known/x", "login",
     "sign-in", "sso/x", "password.html", "rest", "yourls-api.php", "health.json"],
)  # fmt: skip
def test_addresses_of_pages_and_of_sign_in_pages_are_reserved(code: str) -> None:
    with pytest.raises(SlugReserved):
        validate_code(code)


@pytest.mark.parametrize(
    "code",
    ["", "/x", "x/", " x", "x ", "a?b", "a#b", "a\nb", "a\x00b", "../x", "x/./y", "x/..", "a\\b",
     "\udc80", "x" * 256, "a|b"],
)  # fmt: skip
def test_codes_that_no_browser_can_send_are_refused(code: str) -> None:
    with pytest.raises(InvalidSlug):
        validate_code(code)


def test_the_longest_code_has_room_on_the_default_domain() -> None:
    assert len(validate_code("x" * 255)) == 257
    with pytest.raises(InvalidSlug):
        validate_code("x" * 255, "h" * 253)


async def test_kept_codes_are_exported_and_read_again(rt: Runtime, ada: User) -> None:
    await bring(rt, ada, "ab", "aB", "x,y;z/1", "https:")
    before = await texts(rt)
    for form in LinkExportFormat:
        writer, now = LinkExportWriter(form), rt.clock.now()
        pages = [
            writer.page(build_record(card, now) for card in cards)
            async for cards in iter_card_pages(rt)
        ]
        file = writer.head() + "".join(pages) + writer.tail()
        await forget_links(rt)

        rows = open_link_file(io.BytesIO(file.encode()), rt.clock.now())
        importer = LinkImporter(rt, make.space(rt), ada, keep_ids=True)
        assert outcomes(await importer.import_batch(list(rows))) == [CREATED] * 4
        assert await texts(rt) == before


async def test_pages_and_the_api_find_a_link_by_its_kept_code(rt: Runtime, ada: User) -> None:
    await bring(rt, ada, "ab", "aB", "x.y/z")

    async with rt.db.read() as session:
        for code in ("ab", "aB", "x.y/z"):
            found = await resolve_name(session, code)
            assert found is not None
            assert found.link is not None
            assert found.link.destination == f"https://old.example/?{code}"


async def test_a_name_and_a_kept_code_of_two_people_never_both_win(
    rt: Runtime, ada: User, bob: User
) -> None:
    """A transaction that is not committed yet is waited for, in either order."""
    for turn in range(8):
        name = f"race-{turn}"

        async def claim(name: str = name) -> bool:
            try:
                async with rt.db.write() as session:
                    await make.link(session, rt, bob, names=[name])
            except RefractError:
                return False
            return True

        async def keep(name: str = name) -> bool:
            return outcomes(await bring(rt, ada, f"{name}.qr", f"{name}/x")) == [CREATED] * 2

        both = (claim(), keep()) if turn % 2 else (keep(), claim())
        won = await asyncio.gather(*both)
        held = {text for text in await texts(rt) if name in text}
        assert held in ({name}, {f"=/{name}.qr", f"=/{name}/x"}), won


async def test_codes_of_ones_own_with_the_same_stem_are_not_looked_at_one_by_one(
    rt: Runtime, ada: User, bob: User
) -> None:
    """A hundred thousand of them would be compared with each other otherwise."""
    await bring(rt, ada, *(f"promo/{number}/x" for number in range(20)))
    async with rt.db.read() as session:
        assert await find_rivals(session, ["promo"], ada.id, []) == ({}, {})
        _, foreign = await find_rivals(session, ["promo"], bob.id, [])
        assert list(foreign) == ["promo"]
    assert outcomes(await bring(rt, bob, "promo/b/x")) == [SKIPPED]
