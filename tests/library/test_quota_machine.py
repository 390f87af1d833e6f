"""A state machine over the quota: charges, refunds, days, plans, limits of a day.

The counter and the ledger always agree.
"""

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from sqlalchemy import select

from refract.identity.errors import AccountNotFound
from refract.identity.models import User, UserPlan
from refract.library.models import LedgerEntry, QuotaDay
from refract.library.service import quota
from tests import make
from tests.machine import Machine, run_machine

FREE, PRO = 2, 4
PEOPLE = st.integers(0, 1)


@dataclass
class Charge:
    person: int
    day: date
    given_back: bool = False


class Budgets(Machine):
    """Two users and an administrator, over some days."""

    @initialize()
    def begin(self) -> None:
        self.rt = replace(
            self.rt,
            settings=self.rt.settings.model_copy(update={"quota_free": FREE, "quota_pro": PRO}),
        )

        async def start() -> None:
            async with self.rt.db.write() as session:
                self.people = [
                    (await make.person(session, self.rt, name)).id for name in ("ada", "bob")
                ]
                self.root = (await make.admin(session, self.rt)).id

        self.run(start())
        self.plans = [FREE, FREE]
        self.limits: dict[tuple[int, date], int] = {}
        self.charges: dict[int, Charge] = {}

    @property
    def today(self) -> date:
        return self.clock.now().date()

    def used(self, person: int, day: date) -> int:
        return sum(
            one.person == person and one.day == day and not one.given_back
            for one in self.charges.values()
        )

    def limit(self, person: int) -> int:
        return self.limits.get((person, self.today), self.plans[person])

    @rule(person=PEOPLE, item=st.integers(1, 3))
    def charge(self, person: int, item: int) -> None:
        job = self.rt.ids.next_id()

        async def pay() -> bool:
            async with self.rt.db.write() as session:
                user = await session.get_one(User, self.people[person])
                return await quota.charge_quota(session, self.rt, user, item_id=item, job_id=job)

        paid = self.run(pay())
        assert paid == (self.used(person, self.today) < self.limit(person))
        if paid:
            self.charges[job] = Charge(person, self.today)

    @rule(data=st.data())
    def refund(self, data: st.DataObject) -> None:
        """Refund any charge of any day, or one that never was."""
        job = data.draw(st.sampled_from([*self.charges, 7]))

        async def give_back() -> bool:
            async with self.rt.db.write() as session:
                return await quota.refund_quota(session, self.rt, job, "MODEL_UNAVAILABLE")

        charged = self.charges.get(job)
        assert self.run(give_back()) == (charged is not None and not charged.given_back)
        if charged is not None:
            charged.given_back = True

    @rule(person=PEOPLE, limit=st.sampled_from([None, 0, 1, 5]))
    def give_limit(self, person: int, limit: int | None) -> None:
        async def give(user_id: int) -> None:
            async with self.rt.db.write() as session:
                by = await session.get_one(User, self.root)
                await quota.override_limit(session, self.rt, by, user_id, self.today, limit)

        assert self.outcome(give(self.people[person])) is None
        assert self.outcome(give(1)) is AccountNotFound
        self.limits.pop((person, self.today), None)
        if limit is not None:
            self.limits[person, self.today] = limit

    @rule(person=PEOPLE, plan=st.sampled_from([UserPlan.FREE, UserPlan.PRO]))
    def change_plan(self, person: int, plan: UserPlan) -> None:
        async def change() -> None:
            async with self.rt.db.write() as session:
                (await session.get_one(User, self.people[person])).plan = plan

        self.run(change())
        self.plans[person] = PRO if plan == UserPlan.PRO else FREE

    @rule(hours=st.sampled_from([1, 13, 24]))
    def wait(self, hours: int) -> None:
        self.clock.advance(3600 * hours)

    @invariant()
    def counter_and_ledger_agree_with_the_model(self) -> None:
        if not hasattr(self, "charges"):
            return

        async def look() -> tuple[
            list[quota.QuotaBalance], dict[tuple[int, date], int], list[LedgerEntry]
        ]:
            async with self.rt.db.read() as session:
                stand = [
                    await quota.get_balance(session, self.rt, await session.get_one(User, number))
                    for number in self.people
                ]
                days = {
                    (row.user_id, row.day): row.used
                    for row in await session.scalars(select(QuotaDay))
                }
                return stand, days, list(await session.scalars(select(LedgerEntry)))

        stand, days, ledger = self.run(look())
        for person, one in enumerate(stand):
            used = self.used(person, self.today)
            assert (one.limit, one.used, one.remaining) == (
                self.limit(person),
                used,
                max(0, self.limit(person) - used),
            )
        for (user_id, day), counted in days.items():
            assert counted == self.used(self.people.index(user_id), day)
        booked = sorted((entry.job_id, entry.kind) for entry in ledger)
        expected = [(job, "charge") for job in self.charges] + [
            (job, "refund") for job, one in self.charges.items() if one.given_back
        ]
        assert booked == sorted(expected)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_the_budget_does_what_the_model_says(database: str, tmp_path: Path) -> None:
    run_machine(Budgets, database, tmp_path)
