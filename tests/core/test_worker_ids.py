"""Leases of worker ids: two processes never issue ids under the same number at the same time."""

import asyncio
from pathlib import Path

import pytest

from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.errors import StoreUnavailable
from refract.core.ids import WorkerIdLost
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.core.worker_ids import RESERVE_MS, LeasedIds, WorkerIdLease, claim_worker_id, lease_ids


async def test_many_processes_at_once_get_different_worker_ids(
    rt: Runtime, settings: Settings, clock: ManualClock
) -> None:
    others = [Database(settings) for _ in range(8)]
    leases = await asyncio.gather(*(claim_worker_id(db, clock) for db in others for _ in range(4)))
    for db in others:
        await db.close()

    assert len({lease.ids.worker for lease in leases}) == 32


async def _take(
    rt: Runtime, clock: ManualClock, worker: int, monkeypatch: pytest.MonkeyPatch
) -> WorkerIdLease:
    monkeypatch.setattr(
        "refract.core.worker_ids.secrets.choice", lambda free: worker if worker in free else free[0]
    )
    return await claim_worker_id(rt.db, clock)


async def test_the_next_holder_begins_behind_the_last_one_whatever_its_clock_says(
    rt: Runtime, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await _take(rt, clock, 7, monkeypatch)
    used = first.ids.next_id()
    clock.advance(RESERVE_MS / 1000 + 1)

    second = await _take(rt, clock, 7, monkeypatch)

    assert second.ids.worker == 7
    assert second.ids.next_id() > used
    with pytest.raises(WorkerIdLost):
        first.ids.next_id()
    assert await first.renew() is False


async def test_a_holder_that_is_late_with_renewing_gives_nothing_until_it_has(
    rt: Runtime, clock: ManualClock
) -> None:
    lease = await claim_worker_id(rt.db, clock)
    clock.advance(RESERVE_MS / 1000 + 1)
    with pytest.raises(WorkerIdLost):
        lease.ids.next_id()

    assert await lease.renew() is True
    assert lease.ids.next_id()


async def test_a_released_worker_id_can_be_taken_at_once(
    rt: Runtime, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await _take(rt, clock, 3, monkeypatch)
    used = first.ids.next_id()
    await first.release()
    clock.advance(0.002)

    second = await _take(rt, clock, 3, monkeypatch)

    assert second.ids.worker == 3
    assert second.ids.next_id() > used


async def test_a_machine_whose_clock_is_behind_does_not_take_a_worker_id_with_a_future(
    rt: Runtime, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = await _take(rt, clock, 9, monkeypatch)
    ahead.ids.next_id()
    await ahead.release()
    clock.advance(-3600)

    behind = await _take(rt, clock, 9, monkeypatch)

    assert behind.ids.worker != 9


async def test_ids_that_were_lost_are_replaced_by_another_worker_id(
    rt: Runtime, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = LeasedIds(rt.db, clock)
    with pytest.raises(WorkerIdLost):
        ids.next_id()
    await ids.renew()
    first = ids.next_id()
    clock.advance(RESERVE_MS / 1000 + 1)
    thief = await _take(rt, clock, (first >> 12) & 1023, monkeypatch)
    assert thief.ids.worker == (first >> 12) & 1023

    await ids.renew()

    assert (ids.next_id() >> 12) & 1023 != thief.ids.worker


async def test_the_patient_begin_without_a_database_and_the_others_do_not(
    tmp_path: Path, clock: ManualClock
) -> None:
    db = Database(Settings(data_dir=tmp_path, database_url="postgresql://nobody@127.0.0.1:1/none"))
    with pytest.raises(StoreUnavailable):
        async with lease_ids(db, clock):
            pass
    async with lease_ids(db, clock, patient=True) as ids:
        with pytest.raises(WorkerIdLost):
            ids.next_id()
    await db.close()
