"""Rechecks of destinations.

The findings: a page that turned bad after its link was created was never checked again; and a
destination changed by the form, by revert or by undo while the service was unavailable stayed
flagged, because only some callers queued a recheck.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select, update

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from refract.jobs.models import Job
from refract.links import service
from refract.links.enums import FlagReason
from refract.links.models import Link, LinkTotals
from refract.links.safety.jobs import (
    RecheckDueLinks,
    find_due_links,
    recheck_due_links,
    recheck_links,
)
from refract.links.safety.safe_browsing import RETRY_INTERVAL_SECONDS
from refract.links.safety.service import RecheckLinks
from refract.links.schemas import LinkPatch
from refract.lists import entry_jobs
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListMaker
from refract.lists.addresses import check_addresses
from refract.lists.draft_owners import ListClient
from refract.lists.models import ListEntry
from tests import make
from tests.client import by_cookie, by_key, client_of
from tests.links.safe_browsing import FakeSafeBrowsing

DAY = timedelta(days=1)


@pytest.fixture
async def asking(ours: Runtime) -> AsyncIterator[AsyncClient]:
    app = WebNode(ours)
    async with client_of(app) as client:
        yield client
    if app.engine is not None:
        app.engine.spool.close()


async def _make(rt: Runtime, owner: User, destination: str, **given: object) -> int:
    """Create a link with a checked destination.

    The service is never called inside a transaction.
    """
    wish = await make.new_link(rt, destination, **given)
    async with rt.db.write() as session:
        return (await service.create_link(session, rt, owner, wish, charged=False)).card.link.id


async def _lead(rt: Runtime, owner: User, link_id: int, destination: str) -> None:
    checked = await make.checked_changes(rt, destination)
    async with rt.db.write() as session:
        await service.edit_link(
            session,
            make.space(rt),
            make.who(owner),
            link_id,
            LinkPatch(destination=destination),
            checked,
        )


async def _jobs(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return (
            await session.scalar(
                select(func.count()).select_from(Job).where(Job.kind == RecheckLinks.kind)
            )
            or 0
        )


async def _link(rt: Runtime, link_id: int) -> Link:
    async with rt.db.read() as session:
        return await session.get_one(Link, link_id)


@pytest.mark.parametrize("how", ["create", "bulk", "api", "form", "revert", "page revert", "undo"])
async def test_every_way_to_a_destination_has_it_checked_later(
    ours: Runtime, asking: AsyncClient, fake: FakeSafeBrowsing, ada: User, how: str
) -> None:
    link_id = await _make(ours, ada, "https://first.example/", names=["x"])
    if how in ("revert", "page revert"):
        await _lead(ours, ada, link_id, "https://second.example/")
    async with ours.db.write() as session:
        headers = by_key(await make.key(session, ours, ada))
        cookie = by_cookie(ours, await make.cookie(session, ours, ada))
    # The stored result of the first URL expires.
    ours.clock.advance(2 * 86_400)  # type: ignore[attr-defined]
    if how == "undo":
        await _lead(ours, ada, link_id, "https://second.example/")
    fake.mode = "500"
    before, target, page = await _jobs(ours), f"/api/v1/links/{link_id}", f"/app/links/{link_id}"

    match how:
        case "create":
            answer = await asking.post(
                "/api/v1/links", headers=headers, json={"destination": "https://new.example/"}
            )
        case "bulk":
            answer = await asking.post(
                "/api/v1/links/bulk",
                headers=headers,
                json={"links": [{"destination": "https://new.example/"}]},
            )
        case "api":
            answer = await asking.patch(
                target, headers=headers, json={"destination": "https://new.example/"}
            )
        case "form":
            answer = await asking.post(
                page, headers=cookie, data={"destination": "https://new.example/"}
            )
        case "revert":
            answer = await asking.post(f"{target}/history/1/revert", headers=headers)
        case "page revert":
            answer = await asking.post(f"{page}/history/1/revert", headers=cookie)
        case _:
            answer = await asking.post(f"{target}/undo", headers=headers)

    assert answer.status_code < 400, answer.text
    assert await _jobs(ours) == before + 1


async def test_a_page_that_turned_bad_stops_and_its_owner_sees_why(
    ours: Runtime, asking: AsyncClient, fake: FakeSafeBrowsing, ada: User
) -> None:
    good = await _make(ours, ada, "https://good.example/", names=["good"])
    bad = await _make(ours, ada, "https://turned.example/", names=["bad"])
    fake.bad = {"https://turned.example/"}
    await recheck_due_links(ours, RecheckDueLinks())
    assert (await asking.get("/bad")).status_code == 302  # it was checked when it was created

    ours.clock.advance(7 * 86_400)  # type: ignore[attr-defined]
    await recheck_due_links(ours, RecheckDueLinks())

    assert (await asking.get("/bad")).status_code == 410
    assert (await asking.get("/good")).status_code == 302
    stopped, fine = await _link(ours, bad), await _link(ours, good)
    assert (stopped.status, stopped.flag_reason) == ("disabled", "dangerous")
    assert fine.checked_at is not None
    assert fine.checked_at >= fine.created_at + 7 * DAY
    async with ours.db.write() as session:
        cookie = by_cookie(ours, await make.cookie(session, ours, ada))
    path = f"/app/links/{bad}?tab=history"
    page = (await asking.get(path, headers=cookie | {"Accept": "text/html"})).text
    assert "listed as dangerous" in page
    assert "Dangerous destination (social engineering)" in page  # in its history
    async with ours.db.read() as session:
        line = (
            await session.scalars(select(AuditEntry).where(AuditEntry.action == "link.disabled"))
        ).one()
    assert (line.actor_id, line.target, line.detail) == (
        None,
        str(bad),
        "dangerous (social engineering)",
    )


async def test_a_rule_that_turned_bad_stops_its_link(
    ours: Runtime, asking: AsyncClient, fake: FakeSafeBrowsing, ada: User
) -> None:
    link_id = await _make(ours, ada, "https://good.example/", names=["ruled"])
    other = await _make(ours, ada, "https://good.example/", names=["other"])
    async with ours.db.write() as session:
        headers = by_key(await make.key(session, ours, ada))
    for number, place in ((link_id, "turned"), (other, "fine")):
        rule = {"destination": f"https://{place}.example/{{1=}}", "conditions": {"share": 1}}
        saved = await asking.put(
            f"/api/v1/links/{number}/rules", headers=headers, json={"rules": [rule]}
        )
        assert saved.status_code == 200, saved.text
    fake.bad = {"https://turned.example/"}
    ours.clock.advance(7 * 86_400)  # type: ignore[attr-defined]

    await recheck_due_links(ours, RecheckDueLinks())

    assert (await asking.get("/ruled")).status_code == 410
    assert (await asking.get("/other")).status_code == 302
    stopped = await _link(ours, link_id)
    assert (stopped.status, stopped.flag_reason) == ("disabled", "dangerous")
    assert stopped.rules is not None


async def test_a_rule_that_could_not_be_checked_is_checked_later(
    ours: Runtime, asking: AsyncClient, fake: FakeSafeBrowsing, ada: User
) -> None:
    link_id = await _make(ours, ada, "https://good.example/", names=["ruled"])
    async with ours.db.write() as session:
        headers = by_key(await make.key(session, ours, ada))
    fake.mode = "500"
    before = await _jobs(ours)
    rule = {"destination": "https://turned.example/", "conditions": {"share": 1}}
    path = f"/api/v1/links/{link_id}/rules"
    saved = await asking.put(path, headers=headers, json={"rules": [rule]})
    assert saved.status_code == 200, saved.text
    assert await _jobs(ours) == before + 1
    fake.mode, fake.bad = "ok", {"https://turned.example/"}
    ours.clock.advance(RETRY_INTERVAL_SECONDS)  # type: ignore[attr-defined]

    await recheck_links(ours, RecheckLinks(link_ids=[link_id]))

    assert (await _link(ours, link_id)).flag_reason == "dangerous"


async def test_links_with_clicks_are_due_daily_and_others_weekly(ours: Runtime, ada: User) -> None:
    followed, idle, old = [
        await _make(ours, ada, f"https://{name}.example/") for name in ("one", "two", "three")
    ]
    async with ours.db.write() as session:
        await session.execute(
            update(Link).where(Link.id == old).values(checked_at=None)
        )  # from before there were checks
    start = ours.clock.now()

    async def due_at(after: timedelta) -> set[int]:
        seconds = (start + after - ours.clock.now()).total_seconds()
        ours.clock.advance(seconds)  # type: ignore[attr-defined]
        async with ours.db.read() as session:
            return set(await find_due_links(session, ours))

    assert await due_at(timedelta()) == {old}
    async with ours.db.write() as session:
        session.add(
            LinkTotals(
                link_id=followed,
                total_clicks=1,
                bot_clicks=0,
                last_clicked_at=start + timedelta(hours=1),
            )
        )
    assert await due_at(DAY - timedelta(minutes=1)) == {old}
    assert await due_at(DAY) == {old, followed}
    assert await due_at(7 * DAY) == {old, followed, idle}


async def test_a_silent_service_ends_the_run_and_flags_nothing(
    ours: Runtime, fake: FakeSafeBrowsing, ada: User
) -> None:
    for number in range(3):
        await _make(ours, ada, f"https://{number}.example/")
    async with ours.db.write() as session:
        await session.execute(update(Link).values(checked_at=None))
    fake.questions.clear()
    fake.mode = "500"
    await recheck_due_links(ours, RecheckDueLinks())
    assert len(fake.questions) == 1
    async with ours.db.read() as session:
        assert await session.scalar(select(func.count()).where(Link.checked_at.is_(None))) == 3
        assert await session.scalar(select(func.count()).where(Link.flagged)) == 0
    fake.mode = "ok"
    ours.clock.advance(RETRY_INTERVAL_SECONDS)  # type: ignore[attr-defined]
    await recheck_due_links(ours, RecheckDueLinks())
    assert len(fake.questions) == 2
    assert len(fake.questions[-1]) == 3


async def test_a_safe_check_does_not_lift_a_look_alike(
    ours: Runtime, fake: FakeSafeBrowsing, ada: User
) -> None:
    fake.mode = "500"
    wish = await make.new_link(ours, "https://pаypal.example/")  # a Cyrillic а
    assert (wish.vetted.flag_reason, wish.vetted.unchecked) == (FlagReason.LOOKALIKE, True)
    async with ours.db.write() as session:
        link_id = (await service.create_link(session, ours, ada, wish, charged=False)).card.link.id
    fake.mode = "ok"
    ours.clock.advance(RETRY_INTERVAL_SECONDS)  # type: ignore[attr-defined]

    await recheck_links(ours, RecheckLinks(link_ids=[link_id]))

    link = await _link(ours, link_id)
    assert (link.flagged, link.flag_reason, link.checked_at) == (
        True,
        "lookalike",
        ours.clock.now(),
    )


async def test_what_an_administrator_lets_through_stays(
    ours: Runtime, fake: FakeSafeBrowsing, ada: User
) -> None:
    async with ours.db.write() as session:
        root = await make.admin(session, ours)
    link_id = await _make(ours, ada, "https://turned.example/", names=["bad"])
    fake.bad = {"https://turned.example/"}
    await recheck_links(ours, RecheckLinks(link_ids=[link_id]))
    async with ours.db.write() as session:
        await service.enable_link(session, make.who(root, admin=True), link_id, ours.clock.now())

    ours.clock.advance(30 * 86_400)  # type: ignore[attr-defined]
    await recheck_due_links(ours, RecheckDueLinks())

    assert (await _link(ours, link_id)).status == "active"


async def test_the_block_list_file_stops_links_that_were_there_before(
    rt: Runtime, tmp_path: Path, ada: User
) -> None:
    path = tmp_path / "blocked.txt"
    path.write_text("")
    ours = replace(rt, settings=rt.settings.model_copy(update={"blocklist_path": path}))
    async with ours.db.write() as session:
        link = await make.link(session, ours, ada, "https://spam.example/", name="bad")
    path.write_text("spam.example\n")
    ours.clock.advance(7 * 86_400)  # type: ignore[attr-defined]

    await recheck_due_links(ours, RecheckDueLinks())

    assert ((await _link(ours, link.id)).status, (await _link(ours, link.id)).flag_reason) == (
        "disabled",
        "blocked",
    )
    await ours.close()


async def test_entries_of_lists_are_checked_again_too(
    ours: Runtime, fake: FakeSafeBrowsing, ada: User
) -> None:
    fake.mode = "500"
    addresses = await check_addresses(
        ours, ListClient(None, None, ""), ["https://good.example/", "https://turned.example/"]
    )
    maker = ListMaker(ada.id)
    async with ours.db.write() as session:
        made = await make.list_of(session, ours, maker)
        space = make.space(ours)
        add = lists.add_entries
        entries = await add(session, space, maker, made.id, addresses)  # type: ignore[arg-type]
        await entry_jobs.enqueue_entry_jobs(session, ours, entries, ada.id)
        good, bad = [entry.id for entry in entries]
        assert (
            await session.scalar(
                select(func.count()).where(Job.kind == entry_jobs.RecheckEntries.kind)
            )
            == 1
        )
    fake.mode = "ok"
    ours.clock.advance(RETRY_INTERVAL_SECONDS)  # type: ignore[attr-defined]
    await entry_jobs.recheck_due_entries(ours, entry_jobs.RecheckDueEntries())
    assert await _entries(ours) == {good: (False, False), bad: (False, False)}
    fake.bad = {"https://turned.example/"}
    await entry_jobs.recheck_due_entries(ours, entry_jobs.RecheckDueEntries())
    assert await _entries(ours) == {good: (False, False), bad: (False, False)}

    ours.clock.advance(7 * 86_400)  # type: ignore[attr-defined]
    await entry_jobs.recheck_due_entries(ours, entry_jobs.RecheckDueEntries())

    assert await _entries(ours) == {good: (False, False), bad: (False, True)}


async def _entries(rt: Runtime) -> dict[int, tuple[bool, bool]]:
    async with rt.db.read() as session:
        return {
            entry.id: (entry.flagged, entry.dangerous)
            for entry in await session.scalars(select(ListEntry))
        }
