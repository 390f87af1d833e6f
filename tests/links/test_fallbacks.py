"""Fallbacks of domains are checked again, like destinations of links."""

import pytest
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.domains.models import Domain
from refract.identity.models import AuditEntry
from refract.links.safety import blocked_domains
from refract.links.safety.fallbacks import RecheckFallbacks, recheck_fallbacks
from tests import make
from tests.client import on_sqlite
from tests.links.safe_browsing import FakeSafeBrowsing
from tests.redirect.nodes import open_place

pytestmark = on_sqlite
GOOD, TURNED = "https://good.example/", "https://turned.example/lost"


@pytest.fixture
async def domains(ours: Runtime) -> None:
    """Two domains that share a fallback, and one without any."""
    async with ours.db.write() as session:
        await make.domain(
            session, ours, "one.test",
            root_destination=GOOD, unknown_destination=TURNED, gone_destination=TURNED,
        )  # fmt: skip
        await make.domain(session, ours, "two.test", unknown_destination=TURNED)
        await make.domain(session, ours, "three.test")


async def load(rt: Runtime) -> dict[str, tuple[str | None, ...]]:
    async with rt.db.read() as session:
        return {
            found.host: (
                found.root_destination,
                found.unknown_destination,
                found.gone_destination,
            )
            for found in await session.scalars(select(Domain))
        }


CLEARED = {
    "one.test": (GOOD, None, None),
    "two.test": (None, None, None),
    "three.test": (None, None, None),
}


async def test_a_fallback_that_turned_bad_is_cleared_in_every_process(
    ours: Runtime, fake: FakeSafeBrowsing, domains: None
) -> None:
    async with open_place(ours) as place:
        await recheck_fallbacks(ours, RecheckFallbacks())
        lost = await place.get("/nothing", headers={"Host": "one.test"})
        assert lost.headers["location"] == TURNED

        fake.bad = {TURNED}
        await recheck_fallbacks(ours, RecheckFallbacks())

        assert await load(ours) == CLEARED
        assert await place.engine.invalidator.poll()
        for host in ("one.test", "two.test"):
            answer = await place.get("/nothing", headers={"Host": host})
            assert (answer.status_code, answer.headers.get("location")) == (404, None)
    async with ours.db.read() as session:
        changed = AuditEntry.action == "domain.changed"
        told = await session.execute(
            select(AuditEntry.target, AuditEntry.actor_id, AuditEntry.detail).where(changed)
        )
        assert sorted(map(tuple, told)) == [
            ("one.test", None, "gone_destination, unknown_destination"),
            ("two.test", None, "unknown_destination"),
        ]


async def test_a_fallback_on_a_blocked_domain_is_cleared(ours: Runtime, domains: None) -> None:
    async with ours.db.write() as session:
        await blocked_domains.block_domain(
            session, "turned.example", reason="phishing", by=None, at=ours.clock.now()
        )
    await recheck_fallbacks(ours, RecheckFallbacks())
    assert await load(ours) == CLEARED


@pytest.mark.parametrize("mode", ["500", "hang up"])
async def test_without_a_result_nothing_is_cleared(
    ours: Runtime, fake: FakeSafeBrowsing, domains: None, mode: str
) -> None:
    before = await load(ours)
    fake.mode, fake.bad = mode, {TURNED}  # type: ignore[assignment]  # one of its modes
    await recheck_fallbacks(ours, RecheckFallbacks())
    assert await load(ours) == before
