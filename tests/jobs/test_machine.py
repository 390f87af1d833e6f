"""Leases against a model: with any workers, zombies and clocks, queue and model agree."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete

from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.jobs import claims, leases, queries, queue
from refract.jobs.errors import JobNotDead, LeaseLost
from refract.jobs.handlers import JobDead, JobDone, JobFailed, JobOutcome, JobReleased
from refract.jobs.models import Job
from refract.jobs.payload import JobClaim
from tests.conftest import START, make_settings
from tests.jobs.conftest import jobs
from tests.jobs.work import Ping
from tests.machine import size

TRIES = 2
LEASE = 60
OUTCOMES: list[JobOutcome] = [
    JobDone(),
    JobFailed("X", "x", 0),
    JobFailed("X", "x", 30),
    JobDead("X", "x"),
    JobReleased(),
]


@dataclass
class Row:
    """The model of a job. `holder` is its current claim."""

    run_at: datetime
    dedup: str | None
    status: str = "PENDING"
    attempts: int = 0
    lease: datetime | None = None
    holder: JobClaim | None = None

    def leave(self, status: str) -> None:
        self.status, self.lease, self.holder = status, None, None
        if status in ("DONE", "DEAD"):
            self.dedup = None


class Leases(RuleBasedStateMachine):
    """One queue, three workers, and every claim that was ever made."""

    url: str
    data_dir: Any

    @initialize()
    def start(self) -> None:
        self.runner = asyncio.Runner()
        self.clock = ManualClock(START)
        own = make_settings(self.data_dir, database_url=self.url, job_lease_seconds=LEASE)
        self.rt = Runtime(
            settings=own,
            db=Database(own),
            clock=self.clock,
            ids=SnowflakeGenerator(1, self.clock, wait=self.clock.advance),
            secret=Secret(b"s" * 40),
        )
        self.model: dict[int, Row] = {}
        self.claims: list[JobClaim] = []
        self.runner.run(self._clear())
        for dedup in (None, "a", None):  # something to compete for from the first step on
            self.enqueue(dedup, 0)
        self.claim("a", 2)

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.run(self.rt.db.close())
            self.runner.close()

    async def _clear(self) -> None:
        async with self.rt.db.write() as session:
            await session.execute(delete(Job))

    async def _write(self, call: Any, *arguments: Any) -> Any:
        async with self.rt.db.write() as session:
            return await call(session, *arguments)

    def _due(self) -> list[int]:
        """Return the jobs that may be claimed, in claiming order."""
        waiting = [
            (row.status, row.run_at, job_id)
            for job_id, row in self.model.items()
            if row.status in ("FAILED", "PENDING")
        ]
        return [job_id for _status, run_at, job_id in sorted(waiting) if run_at <= self.clock.now()]

    def _holds(self, claim: JobClaim) -> bool:
        row = self.model[claim.job_id]
        return row.holder is claim and row.lease is not None and row.lease > self.clock.now()

    @rule(dedup=st.sampled_from([None, None, "a", "b"]), delay=st.sampled_from([0, 0, 45]))
    def enqueue(self, dedup: str | None, delay: int) -> None:
        run_at = self.clock.now() + timedelta(seconds=delay)

        async def ask(session: Any) -> int | None:
            return await queue.enqueue(session, self.rt, Ping(), run_at=run_at, dedup=dedup)

        job_id = self.runner.run(self._write(ask))
        taken = dedup is not None and any(row.dedup == dedup for row in self.model.values())
        assert (job_id is None) == taken
        if job_id is not None:
            self.model[job_id] = Row(run_at, dedup)

    @precondition(lambda self: self._due())
    @rule(worker=st.sampled_from("ab"), limit=st.integers(1, 3))
    def claim(self, worker: str, limit: int) -> None:
        at = self.clock.now()
        due = self._due()
        taken = self.runner.run(
            self._write(claims.claim_jobs, self.rt, worker, {Ping.kind: TRIES}, limit)
        )

        assert [claim.job_id for claim in taken] == due[:limit]
        for claim in taken:
            row = self.model[claim.job_id]
            row.status, row.attempts, row.holder, row.lease = (
                "IN_PROGRESS",
                row.attempts + 1,
                claim,
                at + timedelta(seconds=LEASE),
            )
            assert claim.attempt == row.attempts
        self.claims += taken

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def settle(self, data: st.DataObject, outcome: JobOutcome) -> None:
        claim = data.draw(st.sampled_from(self.claims[-6:]))
        held = self._holds(claim)
        assert self.runner.run(self._write(leases.record_outcome, self.rt, claim, outcome)) == held
        row = self.model[claim.job_id]
        if held:
            row.leave(
                {JobDone: "DONE", JobFailed: "FAILED", JobDead: "DEAD", JobReleased: "PENDING"}[
                    type(outcome)
                ]
            )
            if isinstance(outcome, JobFailed | JobReleased):
                row.run_at = self.clock.now() + timedelta(
                    seconds=outcome.delay if isinstance(outcome, JobFailed) else 0
                )
            row.attempts -= isinstance(outcome, JobReleased)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        some = data.draw(
            st.lists(st.sampled_from(self.claims[-6:]), min_size=1, max_size=3, unique=True)
        )
        held = [claim for claim in some if self._holds(claim)]
        lost = self.runner.run(self._write(leases.renew_leases, self.rt, some))
        assert lost == [claim for claim in some if claim not in held]
        for claim in held:
            self.model[claim.job_id].lease = self.clock.now() + timedelta(seconds=LEASE)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), finish=st.booleans())
    def write_behind_the_fence(self, data: st.DataObject, finish: bool) -> None:
        claim = data.draw(st.sampled_from(self.claims[-6:]))
        held = self._holds(claim)
        job = Ping()
        job.bind_claim(claim)
        try:
            self.runner.run(self._write(queue.finish_job if finish else queue.verify_claim, job))
        except LeaseLost:
            assert not held
        else:
            assert held
            if finish:
                self.model[claim.job_id].leave("DONE")

    @rule(seconds=st.sampled_from([1, 30, 59, 60]))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(page=st.integers(1, 3))
    def recover(self, page: int) -> None:
        at = self.clock.now()
        expired = [row for row in self.model.values() if row.lease is not None and row.lease <= at]
        freed = self.runner.run(leases.recover_expired_jobs(self.rt, page=page))
        assert sorted(dead for _kind, dead in freed) == sorted(
            row.attempts >= TRIES for row in expired
        )
        for row in expired:
            row.leave("DEAD" if row.attempts >= TRIES else "PENDING")
            if row.status == "PENDING":
                row.run_at = at

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.model)[-6:]))
        row = self.model[job_id]
        if row.status != "DEAD":
            with pytest.raises(JobNotDead):
                self.runner.run(self._write(queries.retry_dead_job, self.rt, job_id))
            return
        self.runner.run(self._write(queries.retry_dead_job, self.rt, job_id))
        row.status, row.attempts, row.run_at = "PENDING", 0, self.clock.now()

    @invariant()
    def they_agree(self) -> None:
        if not hasattr(self, "model"):
            return
        stored = {
            job.id: (job.status, job.attempt_count, job.lease_expires_at, job.dedup)
            for job in self.runner.run(jobs(self.rt))
        }
        assert stored == {
            job_id: (row.status, row.attempts, row.lease, row.dedup)
            for job_id, row in self.model.items()
        }


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_leases_agree_with_the_model(database: str, tmp_path: Any) -> None:
    bound = type("BoundLeases", (Leases,), {"url": database, "data_dir": tmp_path})
    run_state_machine_as_test(
        bound,
        settings=settings(
            max_examples=size("EXAMPLES", 24),
            stateful_step_count=size("STEPS", 30),
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
