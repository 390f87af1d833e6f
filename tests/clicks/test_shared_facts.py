"""Events share the facts that repeat, which are there for as long as an event needs them."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Row, func, select

from refract import migrations
from refract.clicks.archive import service
from refract.clicks.ingest.facts import FactsExtractor
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.ingest.shared_facts import drop_unused_facts
from refract.clicks.models import (
    ClickAgent,
    ClickCampaign,
    ClickEvent,
    ClickPlace,
    ClickReferrer,
)
from refract.clicks.queries import FACT_MODELS, list_fact_columns, select_events
from refract.clicks.spool.format import LINK_CLICK, PRIVATE, encode_frame
from refract.clicks.spool.writer import SpoolWriter
from refract.clicks.verify import reconcile
from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.db.types import Model
from refract.core.errors import StoreUnavailable
from refract.core.runtime import Runtime
from tests.clicks.archiving import archived

FIREFOX = b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
INLINE = [name for model in FACT_MODELS.values() for name in list_fact_columns(model)]


def append(rt: Runtime, number: int, **given: Any) -> None:
    """Append clicks to a spool of their own, all by one user agent unless another is given."""
    spool = SpoolWriter(rt.settings.effective_spool_dir, node="here")
    spool.append(
        [
            encode_frame(
                LINK_CLICK,
                42,
                rt.clock.now_ns() + place * 1000,
                given.get("flags", 0),
                bytes((8, 8, place % 250)),
                given.get("agent", FIREFOX),
                b"https://a.example/b",
                b"utm_campaign=spring&utm_content=z%C3%BCrich",
            )
            for place in range(number)
        ]
    )
    spool.close()


async def events(rt: Runtime) -> list[Row[Any]]:
    async with rt.db.read() as session:
        return list(await session.execute(select_events().order_by(ClickEvent.at)))


async def count_rows(rt: Runtime, model: type[Model]) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(model)) or 0


async def count_facts(rt: Runtime) -> list[int]:
    models = (ClickAgent, ClickPlace, ClickReferrer, ClickCampaign)
    return [await count_rows(rt, model) for model in models]


async def test_facts_that_repeat_are_stored_once(rt: Runtime) -> None:
    append(rt, 20)
    append(rt, 5, agent=b"curl/8.5.0")
    append(rt, 3, flags=PRIVATE)

    assert await Ingester(rt).apply_all() == 28

    assert await count_facts(rt) == [2, 1, 1, 1]
    async with rt.db.read() as session:
        counted = [func.count(ClickEvent.__table__.c[name]) for name in INLINE]
        repeated = (await session.execute(select(*counted))).one()
    assert set(repeated) == {0}
    found = await events(rt)
    told = [event for event in found if event.browser == "Firefox"]
    assert len(told) == 20
    assert {
        (
            event.user_agent,
            event.system,
            event.device,
            event.country_code,
            event.country,
            event.referrer,
            event.referrer_host,
            event.utm_campaign,
            event.utm_content,
            event.utm_term,
        )
        for event in told
    } == {
        (
            FIREFOX.decode(),
            "Linux",
            "desktop",
            "US",
            "United States",
            "https://a.example/b",
            "a.example",
            "spring",
            "zürich",
            None,
        )
    }
    assert {event.network for event in told} == {f"8.8.{number}.0" for number in range(20)}
    private = [event for event in found if event.private]
    assert {(event.network, event.user_agent, event.referrer_host) for event in private} == {
        (None, None, None)
    }


async def test_facts_that_are_saved_cost_no_statement(rt: Runtime) -> None:
    ingester = Ingester(rt)
    append(rt, 10)
    await ingester.apply_all()
    statements: list[str] = []
    stop = count_statements(rt.db.engine, statements.append)
    append(rt, 100)  # from other networks of the same place
    await ingester.apply_all()
    stop()

    tables = [model.__tablename__ for model in FACT_MODELS.values()]
    assert not [text for text in statements if any(table in text for table in tables)]
    assert {event.country_code for event in await events(rt)} == {"US"}


class Unlucky(Ingester):
    """Facts cannot be saved the first time; whether they were is unknown."""

    def __init__(self, rt: Runtime, *, committed: bool) -> None:
        super().__init__(rt)
        self.committed = committed
        self.left = 1

    async def _save_facts(self, extractor: FactsExtractor) -> None:
        if self.committed or not self.left:
            await super()._save_facts(extractor)
        if self.left:
            self.left -= 1
            raise StoreUnavailable


@pytest.mark.parametrize("committed", [True, False])
async def test_no_event_lacks_its_facts_when_saving_them_fails(
    rt: Runtime, committed: bool
) -> None:
    append(rt, 10)
    ingester = Unlucky(rt, committed=committed)

    assert await ingester._run_once() == 1.0
    assert await count_rows(rt, ClickEvent) == 0
    await ingester._run_once()

    assert {event.browser for event in await events(rt)} == {"Firefox"}
    assert (await reconcile(rt)).drift == []


async def test_facts_are_kept_for_as_long_as_an_event_refers_to_them(
    rt: Runtime, clock: ManualClock
) -> None:
    ingester = Ingester(rt)
    append(rt, 3)
    append(rt, 3, agent=b"curl/8.5.0")
    await ingester.apply_all()
    clock.advance(10 * 86_400)
    append(rt, 3)  # the process knows the user agent since ten days
    await ingester.apply_all()

    assert await drop_unused_facts(rt) == 0  # the old events are still in the database
    before = {tuple(event) for event in await events(rt)}
    await service.archive_old_days(rt)
    assert await drop_unused_facts(rt) == 1

    assert await count_facts(rt) == [1, 1, 1, 1]
    assert {tuple(event) for event in [*await events(rt), *await archived(rt)]} == before
    assert {event.browser for event in await events(rt)} == {"Firefox"}


async def test_facts_of_events_that_are_gone_are_dropped(rt: Runtime, clock: ManualClock) -> None:
    append(rt, 3)
    await Ingester(rt).apply_all()
    clock.advance(timedelta(days=30).total_seconds())
    await service.archive_old_days(rt)

    assert await drop_unused_facts(rt) == 4

    assert await count_facts(rt) == [0, 0, 0, 0]


async def test_a_downgrade_copies_the_facts_back(rt: Runtime) -> None:
    older = [name for name in INLINE if name not in ("domain", "language", "rule")]
    append(rt, 8)
    await Ingester(rt).apply_all()
    wanted = [tuple(getattr(event, name) for name in older) for event in await events(rt)]

    await migrations.downgrade(rt.db, "0026")

    async with rt.db.read() as session:
        inline = [ClickEvent.__table__.c[name] for name in older]
        rows = await session.execute(select(*inline).order_by(ClickEvent.at))
        assert [tuple(row) for row in rows] == wanted
    await migrations.upgrade(rt.db)
    assert [tuple(getattr(event, name) for name in older) for event in await events(rt)] == wanted
