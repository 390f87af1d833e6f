"""Creating links from rows, exactly once, on three databases."""

import asyncio
import io
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, func, select

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.ids import encode_base62, get_min_id
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
from refract.links.models import (
    FeedEntry,
    Link,
    LinkChange,
    LinkOwner,
    LinkShare,
    LinkTag,
    LinkTombstone,
)
from refract.links.schemas import LinkPatch
from refract.names.models import Name
from refract.tags.models import Tag
from tests import make

CARD = {"title": '=Plans, "2027"', "image_url": "https://cdn.example/p.png"}
RULES = [
    {
        "destination": 'https://example.com/ü,"{1=x}"',
        "conditions": {"languages": ["de"], "query": [{"name": "=A", "value": None}]},
    }
]


async def bring(rt: Runtime, owner: User, text: str, **how: Any) -> list[LinkImportResult]:
    rows = list(open_link_file(io.BytesIO(text.encode()), rt.clock.now()))
    return await LinkImporter(rt, make.space(rt), owner, **{"keep_ids": True, **how}).import_batch(
        rows
    )


def outcomes(results: Sequence[LinkImportResult]) -> list[LinkImportOutcome]:
    return [one.outcome for one in results]


async def count(rt: Runtime, model: type[Any] = Link) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(model)) or 0


async def exported(rt: Runtime, form: LinkExportFormat = LinkExportFormat.JSONL) -> str:
    writer, now = LinkExportWriter(form), rt.clock.now()
    pages = [
        writer.page(build_record(card, now) for card in cards)
        async for cards in iter_card_pages(rt)
    ]
    return writer.head() + "".join(pages) + writer.tail()


async def forget_links(rt: Runtime) -> None:
    async with rt.db.write() as session:
        for model in (LinkTag, LinkOwner, LinkShare, LinkChange, Name, Link, FeedEntry, Tag):
            await session.execute(delete(model))


async def furnish(rt: Runtime, clock: ManualClock, ada: User) -> None:
    """Create links of every kind."""
    async with rt.db.write() as session:
        named = await make.link(
            session,
            rt,
            ada,
            "https://example.com/ü?q={name=x}",
            names=["Road_Map", "rm"],
            title="=1+1",
            tags=["b", "A c"],
        )
        await make.link(
            session,
            rt,
            ada,
            notes="'-line\r\nanother\ttab",
            redirect_status=308,
            visibility="secure",
            forward_query=True,
        )
        await make.link(
            session, rt, ada, name="short-lived", expires_at=rt.clock.now() + service.UNDO_WINDOW
        )
        gone = await make.link(session, rt, ada, name="gone")
        named.rules = json.dumps({"next": 4, "rules": [{"number": 2, **rule} for rule in RULES]})
        named.preview_card, named.noindex = json.dumps(CARD), True
        await service.disable_link(session, make.who(ada), named.id, rt.clock.now())
        await service.delete_link(session, make.who(ada), gone.id, rt.clock.now())
    clock.advance(3 * 24 * 3600)


async def test_an_export_brought_into_an_empty_installation_is_equal(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    await furnish(rt, clock, ada)
    for form in LinkExportFormat:
        before = await exported(rt, form)
        await forget_links(rt)

        assert outcomes(await bring(rt, ada, before)) == [LinkImportOutcome.CREATED] * 3
        assert await exported(rt, form) == before
        if form is LinkExportFormat.JSON:
            links = json.loads(before)["links"]
            assert [link["rules"] for link in links] == [RULES, [], []]
            assert [link["preview_card"] for link in links] == [CARD, None, None]
        assert outcomes(await bring(rt, ada, before)) == [LinkImportOutcome.EXISTS] * 3
        assert await exported(rt, form) == before


async def test_a_link_that_was_changed_or_deleted_since_is_left_alone(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    await furnish(rt, clock, ada)
    before = await exported(rt)
    async with rt.db.write() as session:
        _, second, third = list(
            await session.scalars(select(Link.id).where(Link.status != "deleted").order_by(Link.id))
        )
        checked = await make.checked_changes(rt, "https://example.com/new")
        await service.edit_link(
            session,
            make.space(rt),
            make.who(ada),
            second,
            LinkPatch(destination="https://example.com/new"),
            checked,
        )
        await service.delete_link(session, make.who(ada), third, rt.clock.now())
    after = await exported(rt)

    results = await bring(rt, ada, before)

    assert [(one.outcome, one.why) for one in results] == [
        (LinkImportOutcome.EXISTS, None),
        (LinkImportOutcome.EXISTS, "It has been changed here since."),
        (LinkImportOutcome.SKIPPED, "It was deleted here. Restore it, or release its name."),
    ]
    assert await exported(rt) == after


async def test_ids_are_kept_only_where_nobody_could_have_them(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        theirs = (await make.link(session, rt, bob)).id
        clock.advance(3600)
        free, named, purged = (rt.ids.next_id() for _ in range(3))
        clock.advance(3600)
        await make.link(session, rt, bob, name=encode_base62(named))
        session.add(LinkTombstone(link_id=purged, purged_at=rt.clock.now()))
    future = get_min_id(rt.clock.now() + timedelta(hours=1))
    numbers = [theirs, free, named, purged, future, free]
    text = "id,destination\n" + "".join(
        f"{number},https://example.com/{place}\n" for place, number in enumerate(numbers)
    )

    results = await bring(rt, ada, text)

    assert outcomes(results) == [LinkImportOutcome.CREATED] * 5 + [LinkImportOutcome.EXISTS]
    async with rt.db.read() as session:
        mine = set(
            await session.scalars(select(LinkOwner.link_id).where(LinkOwner.user_id == ada.id))
        )
    assert mine & set(numbers) == {free}
    assert [bool(one.remarks) for one in results[:5]] == [True, False, True, True, True]
    assert outcomes(await bring(rt, ada, text)) == [LinkImportOutcome.EXISTS] * 6
    assert outcomes(await bring(rt, bob, text, keep_ids=False)) == [LinkImportOutcome.CREATED] * 6


async def test_a_name_that_leads_elsewhere(
    rt: Runtime, clock: ManualClock, ada: User, bob: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, bob, name="papers", destination="https://example.org/")
    text = "names,destination\npapers|guide,https://example.com/\nfree,https://example.com/free\n"

    skipped = await bring(rt, ada, text, dry_run=True)
    failed = await bring(rt, ada, text, conflict=NameConflictPolicy.FAIL, dry_run=True)
    renamed = await bring(rt, ada, text, conflict=NameConflictPolicy.RENAME)
    again = await bring(rt, ada, text, conflict=NameConflictPolicy.RENAME)

    assert outcomes(skipped) == [LinkImportOutcome.SKIPPED, LinkImportOutcome.CREATED]
    assert skipped[0].why == 'The name "papers" is already in use. Choose another.'
    assert outcomes(failed) == [LinkImportOutcome.REFUSED, LinkImportOutcome.CREATED]
    assert outcomes(renamed) == [LinkImportOutcome.CREATED, LinkImportOutcome.CREATED]
    assert renamed[0].names == ["papers-2", "guide"]
    assert outcomes(again) == [LinkImportOutcome.EXISTS, LinkImportOutcome.EXISTS]
    assert await count(rt) == 3


async def test_the_same_name_many_times_in_one_file(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    rows = [("Papers", 1), ("papers", 2), ("PAPERS", 1), ("d_x", 3), ("d-x", 3)] + [
        ("papers", number) for number in range(4, 40)
    ]
    text = "name,destination\n" + "".join(
        f"{name},https://example.com/{number}\n" for name, number in rows
    )
    skip = [
        LinkImportOutcome.CREATED,
        LinkImportOutcome.SKIPPED,
        LinkImportOutcome.EXISTS,
        LinkImportOutcome.CREATED,
        LinkImportOutcome.EXISTS,
    ] + [LinkImportOutcome.SKIPPED] * 36
    rename = [
        LinkImportOutcome.CREATED,
        LinkImportOutcome.CREATED,
        LinkImportOutcome.EXISTS,
        LinkImportOutcome.CREATED,
        LinkImportOutcome.EXISTS,
    ] + [LinkImportOutcome.CREATED] * 36

    assert outcomes(await bring(rt, ada, text)) == skip
    assert outcomes(await bring(rt, ada, text)) == [
        LinkImportOutcome.EXISTS if one is LinkImportOutcome.CREATED else one for one in skip
    ]
    await forget_links(rt)
    assert outcomes(await bring(rt, ada, text, conflict=NameConflictPolicy.RENAME)) == rename
    assert (
        outcomes(await bring(rt, ada, text, conflict=NameConflictPolicy.RENAME))
        == [LinkImportOutcome.EXISTS] * 41
    )


async def test_bad_rows_take_nothing_from_the_others(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    lines = [
        "fine,https://example.com/,,",
        "x1,javascript:alert(1),,",
        "x2,https://user:secret@example.com/,,",
        "x3,https://example.com/\x01,,",
        "x4,http://go.test/loop,,",
        "admin,https://example.com/,,",
        "-no,https://example.com/,,",
        f"x5,https://example.com/,{'t' * 201},",
        "x6,https://example.com/,,a*b",
        "x7,,,",
        "also-fine,https://example.com/2,\x1b[31mred,tag",
    ]
    results = await bring(rt, ada, "\n".join(["name,destination,title,tags", *lines]))

    assert outcomes(results) == [LinkImportOutcome.CREATED] + [LinkImportOutcome.REFUSED] * 9 + [
        LinkImportOutcome.CREATED
    ]
    assert all(one.why for one in results if one.outcome is LinkImportOutcome.REFUSED)
    assert await count(rt) == 2
    assert await count(rt, Name) == 2


async def test_a_rule_that_is_refused_is_named(rt: Runtime, ada: User) -> None:
    def row(**rule: Any) -> str:
        good = {"destination": "https://example.com/a", "conditions": {"share": 5}}
        rules = [good, good | rule]
        return json.dumps({"destination": "https://example.com/", "rules": rules})

    lines = [
        row(),
        row(destination="ftp://example.com/"),
        row(conditions={}),
        row(conditions={"share": 101}),
        '{"destination": "https://example.com/", "rules": "none"}',
    ]
    results = await bring(rt, ada, "\n".join(lines))
    assert outcomes(results) == [LinkImportOutcome.CREATED, *[LinkImportOutcome.REFUSED] * 4]
    places = [(result.why or "").partition(": ")[0] for result in results[1:]]
    assert places == ["rules.1.destination", "rules.1", "rules.1.conditions.share", "rules"]
    text = f"destination,rules\nhttps://example.com/b,{'[' * 50_000}\n"
    (table,) = await bring(rt, ada, text)
    assert (table.outcome, (table.why or "")[:7]) == (LinkImportOutcome.REFUSED, "rules: ")


async def test_reserved_names_can_be_had_by_another_name(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    text = "keyword,url\napi,https://example.com/api\n"

    assert outcomes(await bring(rt, ada, text)) == [LinkImportOutcome.REFUSED]
    renamed = await bring(rt, ada, text, conflict=NameConflictPolicy.RENAME)
    assert [list(one.names) for one in renamed] == [["api-2"]]


async def test_a_link_without_a_name_is_known_by_where_it_leads(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    text = (
        "destination,tags\nhttps://example.com/,a\nhttps://EXAMPLE.com,a\nhttps://example.com/,b\n"
    )

    assert outcomes(await bring(rt, ada, text)) == [
        LinkImportOutcome.CREATED,
        LinkImportOutcome.EXISTS,
        LinkImportOutcome.CREATED,
    ]
    assert outcomes(await bring(rt, ada, text)) == [LinkImportOutcome.EXISTS] * 3
    dead = await bring(rt, ada, "destination,status\nhttps://example.com/dead,disabled\n")
    assert outcomes(dead) == [LinkImportOutcome.REFUSED]


async def test_a_dry_run_changes_nothing_and_remembers_its_earlier_batches(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    text = "name,destination,tags\na,https://example.com/1,new\nb,https://example.com/2,new\n"
    rows = list(open_link_file(io.BytesIO(text.encode()), rt.clock.now()))
    trying = LinkImporter(rt, make.space(rt), ada, dry_run=True)

    first = await trying.import_batch(rows)
    second = await trying.import_batch(rows)

    assert outcomes(first) == [LinkImportOutcome.CREATED] * 2
    assert outcomes(second) == [LinkImportOutcome.EXISTS] * 2
    for model in (Link, Name, Tag, FeedEntry):
        assert await count(rt, model) == 0


async def test_two_imports_of_one_file_at_once_make_every_link_once(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    numbers = [rt.ids.next_id() for _ in range(200)]
    clock.advance(3600)
    lines = [
        f"{number},{f'n{place}' if place % 2 else ''},https://example.com/{place}"
        for place, number in enumerate(numbers)
    ]
    text = "\n".join(["id,name,destination", *lines])

    both = await asyncio.gather(bring(rt, ada, text), bring(rt, ada, text))

    made = [one.outcome for results in both for one in results].count(LinkImportOutcome.CREATED)
    assert made == await count(rt) == 200


async def test_the_number_of_queries_does_not_grow_with_the_rows(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    async def statements(start: int, rows: int) -> int:
        said: list[str] = []
        stop = count_statements(rt.db.engine, said.append)
        text = "name,destination\n" + "".join(
            f"n{number},https://example.com/{number}\n" for number in range(start, start + rows)
        )
        assert outcomes(await bring(rt, ada, text)) == [LinkImportOutcome.CREATED] * rows
        stop()
        return len(said)

    few = await statements(0, 10)
    assert await statements(1000, 900) <= few + 2
