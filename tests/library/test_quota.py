"""The AI quota: exact under concurrency, explained by its ledger, refunded once."""

import asyncio
import re
from datetime import date

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, Scope, User
from refract.jobs.worker import JobWorker
from refract.library.models import Item, LedgerEntry, QuotaDay
from refract.library.service import quota
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.library.conftest import Save
from tests.library.http import Model

NOWHERE = {"model_url": "http://127.0.0.1:9/v1", "model_name": "tiny"}


@pytest.mark.parametrize("given", [{**NOWHERE, "quota_free": 20}])
async def test_a_crowd_uses_exactly_the_limit(rt: Runtime, as_ada: AsyncClient) -> None:
    """The full size is `make proof quota`."""
    answers = await asyncio.gather(
        *(
            as_ada.post("/api/v1/items", json={"text": f"Thought {number}."})
            for number in range(100)
        )
    )

    assert {answer.status_code for answer in answers} == {201}
    assert sum(answer.json()["note"] == "OVER_QUOTA" for answer in answers) == 80
    async with rt.db.read() as session:
        assert await session.scalar(select(QuotaDay.used)) == 20
        assert await session.scalar(select(func.count()).select_from(LedgerEntry)) == 20
        paid = select(func.count()).select_from(Item).where(Item.charged_job_id.is_not(None))
        assert await session.scalar(paid) == 20
    assert (await as_ada.get("/api/v1/me/quota")).json()["remaining"] == 0


async def test_a_refund_is_given_once(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        assert await quota.charge_quota(session, rt, ada, item_id=1, job_id=7)
    for expected in (True, False, False):
        async with rt.db.write() as session:
            assert await quota.refund_quota(session, rt, 7, "MODEL_UNAVAILABLE") is expected
    async with rt.db.write() as session:
        assert await quota.refund_quota(session, rt, 8, "never charged") is False
        assert (await quota.get_balance(session, rt, ada)).used == 0
        assert list(await session.scalars(select(LedgerEntry.kind).order_by(LedgerEntry.id))) == [
            "charge",
            "refund",
        ]


async def test_parallel_refunds_give_back_once(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await quota.charge_quota(session, rt, ada, item_id=1, job_id=7)
        await quota.charge_quota(session, rt, ada, item_id=2, job_id=8)

    async def refund() -> bool:
        async with rt.db.write() as session:
            return await quota.refund_quota(session, rt, 7, "twice")

    assert sorted(await asyncio.gather(*(refund() for _ in range(5)))) == [
        False,
        False,
        False,
        False,
        True,
    ]
    async with rt.db.read() as reading:
        assert (await quota.get_balance(reading, rt, ada)).used == 1


async def test_a_new_day_a_better_plan_and_a_limit_of_its_own(
    rt: Runtime, ada: User, clock: ManualClock
) -> None:
    async def charged(item: int) -> bool:
        async with rt.db.write() as session:
            return await quota.charge_quota(session, rt, ada, item_id=item, job_id=item)

    async with rt.db.write() as session:
        await quota.set_day_limit(session, rt, ada.id, date(2026, 6, 1), 1)
    assert (await charged(1), await charged(2)) == (True, False)
    clock.advance(12 * 3600)
    assert await charged(3), "12:00 plus twelve hours is another day"
    async with rt.db.read() as reading:
        assert (await quota.get_balance(reading, rt, ada)).limit == 50
        ada.plan = "pro"
        standing = await quota.get_balance(reading, rt, ada)
    assert (standing.limit, standing.used, standing.remaining) == (500, 1, 499)


@on_sqlite
async def test_an_administrator_gives_somebody_more_for_a_day(
    rt: Runtime, client: AsyncClient, root: User, ada: User
) -> None:
    async with rt.db.write() as session:
        headers = by_key(await make.key(session, rt, root, *make.ALL))

    answer = await client.put(
        f"/api/v1/admin/users/{ada.id}/quota",
        json={"day": "2026-06-01", "limit": 7},
        headers=headers,
    )

    assert answer.json() == {
        "limit": 7,
        "used": 0,
        "remaining": 7,
        "resets_at": "2026-06-02T00:00:00Z",
    }
    back = await client.put(
        f"/api/v1/admin/users/{ada.id}/quota",
        json={"day": "2026-06-01", "limit": None},
        headers=headers,
    )
    assert back.json()["limit"] == 50


@on_sqlite
@pytest.mark.parametrize("given", [{"quota_free": 1}])
async def test_over_quota_the_offline_tier_does_it(
    rt: Runtime, work: JobWorker, save: Save, model: Model, as_ada: AsyncClient
) -> None:
    first, second = (
        await save("One thought about engines."),
        await save("Another thought about engines."),
    )

    await work.run_due_jobs()

    items = {
        item["id"]: item for item in (await as_ada.get("/api/v1/items/pending")).json()["items"]
    }
    assert (items[str(first.id)]["enrichment"], items[str(first.id)]["note"]) == ("AI", None)
    assert (items[str(second.id)]["enrichment"], items[str(second.id)]["note"]) == (
        "SYSTEM",
        "OVER_QUOTA",
    )
    assert {item["status"] for item in items.values()} == {"READY_TO_CONFIRM"}
    assert len(model.questions) == 1


@on_sqlite
async def test_without_a_model_nothing_is_charged(rt: Runtime, save: Save) -> None:
    item = await save("A thought.")

    assert item.note is None
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(LedgerEntry)) == 0


async def _allow_settings(rt: Runtime, asking: AsyncClient, user: User) -> None:
    async with rt.db.write() as session:
        asking.headers.update(
            by_key(await make.key(session, rt, user, *make.READ_WRITE, Scope.ACCOUNT))
        )


def _shown_quota(page: str) -> tuple[str, str] | None:
    found = re.search(r'<progress[^>]* max="(\d+)" value="(\d+)"', page)
    return (found[2], found[1]) if found else None


@on_sqlite
@pytest.mark.parametrize("given", [{**NOWHERE, "quota_free": 2}])
async def test_the_settings_show_the_budget_and_what_it_went_to(
    rt: Runtime, as_ada: AsyncClient, ada: User
) -> None:
    as_ada.headers["Accept"] = "text/html"
    await _allow_settings(rt, as_ada, ada)
    assert _shown_quota((await as_ada.get("/app/settings")).text) == ("0", "2")
    for thought in ("First <b>thought</b>", "Second thought", "Third thought"):
        await as_ada.post("/api/v1/items", json={"text": thought})
    async with rt.db.write() as session:
        job = await session.scalar(select(LedgerEntry.job_id).order_by(LedgerEntry.id))
        assert job is not None

    spent = (await as_ada.get("/app/settings")).text
    async with rt.db.write() as session:
        await quota.refund_quota(session, rt, job, "MODEL_TOO_SLOW")
    after = (await as_ada.get("/app/settings")).text

    assert _shown_quota(spent) == ("2", "2")
    assert "Daily limit reached" in spent
    assert "First &lt;b&gt;thought&lt;/b&gt;" in spent
    assert "Third thought" not in spent
    assert _shown_quota(after) == ("1", "2")
    assert "Refunded: The AI model took too long" in after
    assert 'datetime="2026-' in after


@on_sqlite
async def test_without_a_model_there_is_no_budget_to_show(
    rt: Runtime, as_ada: AsyncClient, ada: User
) -> None:
    await _allow_settings(rt, as_ada, ada)
    page = (await as_ada.get("/app/settings", headers={"Accept": "text/html"})).text

    assert "No AI model connected" in page
    assert _shown_quota(page) is None


@on_sqlite
@pytest.mark.parametrize("given", [{**NOWHERE, "quota_free": 2}])
async def test_an_administrator_gives_somebody_another_limit_for_a_day(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        root = by_cookie(rt, await make.cookie(session, rt, await make.admin(session, rt))) | {
            "Accept": "text/html"
        }
    today = rt.clock.now().date()
    path = f"/app/admin/people/{ada.id}/quota"

    async def limit() -> int:
        async with rt.db.read() as session:
            return (await quota.get_balance(session, rt, ada)).limit

    assert "AI 0/2 today" in (await client.get("/app/admin/people", headers=root)).text
    assert (
        await client.post(path, headers=root, data={"day": str(today), "limit": "7"})
    ).status_code == 303
    assert await limit() == 7
    assert "/7 today" in (await client.get("/app/admin/people", headers=root)).text
    for wrong in (
        {"day": str(today), "limit": "-1"},
        {"day": str(today), "limit": "many"},
        {"day": "someday", "limit": "5"},
    ):
        assert (await client.post(path, headers=root, data=wrong)).status_code == 422
    assert (
        await client.post("/app/admin/people/1/quota", headers=root, data={"day": str(today)})
    ).status_code == 404
    assert await limit() == 7
    assert (
        await client.post(path, headers=root, data={"day": str(today), "limit": " "})
    ).status_code == 303
    assert await limit() == 2
    async with rt.db.read() as reading:
        lines = [
            one.detail
            for one in await reading.scalars(
                select(AuditEntry).where(AuditEntry.action == "quota.changed")
            )
        ]
    assert lines == [f"{today}: 7", f"{today}: None"]
