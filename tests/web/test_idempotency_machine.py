"""POSTs with an Idempotency-Key as a state machine: run once, rejected, expired."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from httpx import Response
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from sqlalchemy import func, select

from refract.app import WebNode
from refract.links.models import Link
from refract.web.idempotency import RESPONSE_RETENTION
from tests import make
from tests.client import by_key, client_of
from tests.machine import Machine, run_machine

GOOD = {
    "a": {"destination": "https://example.com/a"},
    "b": {"destination": "https://example.com/b"},
}
BAD = {"destination": "no address"}


@dataclass
class Done:
    body: str
    at: datetime
    answer: bytes


class Posts(Machine):
    """Two users who may use the same keys."""

    @initialize()
    def begin(self) -> None:
        unlimited = {"creates_per_hour": None, "key_requests_per_hour": None}
        self.rt = replace(self.rt, settings=self.rt.settings.model_copy(update=unlimited))
        self.application = WebNode(self.rt)

        async def start() -> dict[str, str]:
            async with self.rt.db.write() as session:
                return {
                    name: await make.key(
                        session, self.rt, await make.person(session, self.rt, name)
                    )
                    for name in ("ada", "bob")
                }

        self.keys = self.run(start())
        self.done: dict[tuple[str, str], Done] = {}
        self.links = 0

    def teardown(self) -> None:
        if hasattr(self, "application") and self.application.engine is not None:
            self.application.engine.spool.close()
        self.run(self.rt.close())

    def post(self, who: str, body: dict[str, str], key: str | None) -> Response:
        async def ask() -> Response:
            async with client_of(self.application) as client:
                headers = by_key(self.keys[who]) | ({"Idempotency-Key": key} if key else {})
                return await client.post("/api/v1/links", json=body, headers=headers)

        return self.run(ask())

    def known(self, who: str, key: str) -> Done | None:
        done = self.done.get((who, key))
        return done if done and done.at + RESPONSE_RETENTION >= self.clock.now() else None

    @rule(
        who=st.sampled_from(["ada", "bob"]),
        body=st.sampled_from(sorted(GOOD)),
        key=st.sampled_from(["one", "two"]),
    )
    def with_a_key(self, who: str, body: str, key: str) -> None:
        before, answer = self.known(who, key), self.post(who, GOOD[body], key)
        if before is None:
            assert answer.status_code == 201
            assert "idempotency-replayed" not in answer.headers
            self.done[who, key] = Done(body, self.clock.now(), answer.content)
            self.links += 1
        elif before.body == body:
            assert (answer.status_code, answer.content, answer.headers["idempotency-replayed"]) == (
                201,
                before.answer,
                "true",
            )
        else:
            assert (answer.status_code, answer.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")

    @rule(who=st.sampled_from(["ada", "bob"]), body=st.sampled_from(sorted(GOOD)))
    def without(self, who: str, body: str) -> None:
        assert self.post(who, GOOD[body], None).status_code == 201
        self.links += 1

    @rule(who=st.sampled_from(["ada", "bob"]), key=st.sampled_from(["one", "two"]))
    def refused(self, who: str, key: str) -> None:
        """An error is not stored: the key stays as it was."""
        assert self.post(who, BAD, key).status_code == 422

    @rule(key=st.sampled_from(["x" * 256, "a\tb"]))
    def not_a_key(self, key: str) -> None:
        answer = self.post("ada", GOOD["a"], key)
        assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_IDEMPOTENCY_KEY")

    @rule(hours=st.sampled_from([1, 12, 25]))
    def wait(self, hours: int) -> None:
        self.clock.advance(timedelta(hours=hours).total_seconds())

    @invariant()
    def there_are_as_many_links_as_were_made(self) -> None:
        if not hasattr(self, "links"):
            return

        async def count() -> int:
            async with self.rt.db.read() as session:
                return await session.scalar(select(func.count()).select_from(Link)) or 0

        assert self.run(count()) == self.links


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_posts_are_done_once(database: str, tmp_path: Path) -> None:
    run_machine(Posts, database, tmp_path)
