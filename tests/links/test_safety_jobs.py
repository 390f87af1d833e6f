"""Rechecks of links that were created while the service was unavailable."""

import pytest
from sqlalchemy import func, select, update

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.jobs.errors import TryAgain
from refract.jobs.models import Job
from refract.links import service
from refract.links.models import Link, LinkChange
from refract.links.safety.jobs import PurgeUrlChecks, purge_url_checks, recheck_links
from refract.links.safety.models import UrlCheck
from refract.links.safety.safe_browsing import RETRY_INTERVAL_SECONDS
from refract.links.safety.service import RecheckLinks
from tests import make
from tests.links.safe_browsing import FakeSafeBrowsing


async def _made(rt: Runtime, fake: FakeSafeBrowsing, *destinations: str) -> list[int]:
    """Create links during an outage, which queues the job."""
    fake.mode = "500"
    wishes = [await make.new_link(rt, destination) for destination in destinations]
    assert all(wish.vetted.flagged for wish in wishes)
    async with rt.db.write() as session:
        ada: User = await make.person(session, rt, "ada")
        ids = [
            (await service.create_link(session, rt, ada, wish, charged=False)).card.link.id
            for wish in wishes
        ]
    rt.clock.advance(RETRY_INTERVAL_SECONDS)  # type: ignore[attr-defined]
    return ids


async def _link(rt: Runtime, link_id: int) -> Link:
    async with rt.db.read() as session:
        return await session.get_one(Link, link_id)


async def test_second_look_clears_what_is_safe_and_stops_what_is_not(
    ours: Runtime, fake: FakeSafeBrowsing
) -> None:
    good, bad, pattern = await _made(
        ours, fake, "https://good.example/#x", "https://bad.example/", "https://bad.example/{1}"
    )
    fake.mode, fake.bad = "ok", {"https://bad.example/"}

    await recheck_links(ours, RecheckLinks(link_ids=[good, bad, pattern]))

    clear, stopped, also = (
        await _link(ours, good),
        await _link(ours, bad),
        await _link(ours, pattern),
    )
    assert (clear.flagged, clear.status, clear.version) == (False, "active", 1)
    assert (stopped.flagged, stopped.status, stopped.disabled_by_admin, stopped.version) == (
        True,
        "disabled",
        True,
        2,
    )
    assert also.status == "disabled"
    async with ours.db.read() as session:
        change = await session.get_one(LinkChange, (bad, 2))
        assert (change.action, change.as_admin) == ("disabled", True)
    await recheck_links(
        ours, RecheckLinks(link_ids=[good, bad, pattern])
    )  # again, as after a crash: nothing changes
    assert (await _link(ours, bad)).version == 2


async def test_service_that_is_still_away_is_asked_again_later(
    ours: Runtime, fake: FakeSafeBrowsing
) -> None:
    ids = await _made(ours, fake, "https://good.example/")

    with pytest.raises(TryAgain):
        await recheck_links(ours, RecheckLinks(link_ids=ids))

    assert (await _link(ours, ids[0])).flagged
    async with ours.db.read() as session:
        assert (
            await session.scalar(
                select(func.count()).select_from(Job).where(Job.kind == RecheckLinks.kind)
            )
            == 1
        )


async def test_destination_that_changed_meanwhile_is_left_alone(
    ours: Runtime, fake: FakeSafeBrowsing
) -> None:
    (link_id,) = await _made(ours, fake, "https://bad.example/")
    fake.mode = "malware"

    async def edited(href: str) -> None:
        async with ours.db.write() as session:
            await session.execute(
                update(Link).where(Link.id == link_id).values(href_digest="other")
            )
        assert href

    fake.before_answer = edited
    await recheck_links(ours, RecheckLinks(link_ids=[link_id]))

    assert (await _link(ours, link_id)).status == "active"


async def test_nobody_is_asked_about_links_that_need_it_no_more(
    ours: Runtime, fake: FakeSafeBrowsing
) -> None:
    (link_id,) = await _made(ours, fake, "https://good.example/")
    async with ours.db.write() as session:
        await session.execute(update(Link).where(Link.id == link_id).values(status="deleted"))
    fake.questions.clear()

    await recheck_links(ours, RecheckLinks(link_ids=[link_id, 12345]))

    assert fake.questions == []


async def test_without_a_key_flags_stay_and_the_job_ends(
    ours: Runtime, rt: Runtime, fake: FakeSafeBrowsing
) -> None:
    ids = await _made(ours, fake, "https://good.example/")

    await recheck_links(rt, RecheckLinks(link_ids=ids))

    assert (await _link(rt, ids[0])).flagged


async def test_old_checks_go(ours: Runtime, fake: FakeSafeBrowsing) -> None:
    await make.new_link(ours, "https://good.example/")
    ours.clock.advance(86_400)  # type: ignore[attr-defined]

    await purge_url_checks(ours, PurgeUrlChecks())

    async with ours.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(UrlCheck)) == 0
    assert len(fake.questions) == 1
