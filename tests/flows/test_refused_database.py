"""A database that refuses us while the server runs.

Finding: after a rotated password `/ready` and the API answered 500, and every background loop
logged a traceback a second.
"""

import json
import os
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import URL, make_url

from tests.flows.test_least_privilege import _run as run_statements
from tests.services_plugin import address_of
from tests.serving import refract, serving
from tests.waiting import eventually_blocking


class Account:
    """A database with a user of its own, who can be refused."""

    def __init__(self, server: str, name: str, place: Path) -> None:
        self.url: URL = make_url(server).set(username=name, password="first", database=name)
        self._server = server
        self._name = name
        self._place = place
        self._postgresql = server.startswith("postgresql")

    def _run(self, *statements: str) -> None:
        run_statements(self._server, self._place, *statements)

    def create(self) -> None:
        if self._postgresql:
            self._run(
                f"CREATE ROLE {self._name} LOGIN PASSWORD 'first'",
                f"CREATE DATABASE {self._name} OWNER {self._name}",
            )
        else:
            made = f"CREATE USER {self._name}@'%' IDENTIFIED BY 'first'"
            self._run(
                f"CREATE DATABASE {self._name}",
                made,
                f"GRANT ALL ON {self._name}.* TO {self._name}@'%'",
            )

    def refuse(self) -> None:
        """Rotate the password (PostgreSQL trusts everybody in tests.

        Take the right to log in) and end the connections.
        """
        if self._postgresql:
            ended = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"  # noqa: S608 - our name
                f" WHERE usename = '{self._name}'"
            )
            self._run(f"ALTER ROLE {self._name} NOLOGIN", ended)
        else:
            self._run(
                f"ALTER USER {self._name}@'%' IDENTIFIED BY 'second'", f"KILL USER {self._name}"
            )

    def accept(self) -> None:
        self._run(
            f"ALTER ROLE {self._name} LOGIN"
            if self._postgresql
            else f"ALTER USER {self._name}@'%' IDENTIFIED BY 'first'"
        )

    def drop(self) -> None:
        if self._postgresql:
            self._run(f"DROP DATABASE {self._name} WITH (FORCE)", f"DROP ROLE {self._name}")
        else:
            self._run(f"DROP DATABASE {self._name}", f"DROP USER {self._name}@'%'")


@pytest.fixture(params=["postgresql", "mysql"])
def account(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Account]:
    made = Account(
        address_of(request.param), f"refused_{os.getpid()}_{secrets.token_hex(2)}", tmp_path
    )
    made.create()
    try:
        yield made
    finally:
        made.drop()


def test_a_rotated_password_is_said_and_heals(account: Account, tmp_path: Path) -> None:
    data, url = tmp_path / "data", account.url.render_as_string(hide_password=False)
    with serving(
        data, REFRACT_DATABASE_URL=url, REFRACT_LOG_FORMAT="json", REFRACT_JOB_POLL_SECONDS="1"
    ) as server:
        key = refract(
            "keys", "create", "--name", "n", "--data-dir", str(data), REFRACT_DATABASE_URL=url
        ).stdout.strip()
        seen: Counter[int] = Counter()

        def log_end() -> str:
            return server.output[-3000:]

        def ready() -> httpx.Response:
            answer = httpx.get(f"{server.url}/ready", timeout=30)
            seen[answer.status_code] += 1
            return answer

        account.refuse()
        eventually_blocking(
            lambda: "not accepted" in str(ready().json()["dependencies"]["database"]["detail"]),
            explain=log_end,
        )
        answer = httpx.get(f"{server.url}/api/v1/links", headers={"x-api-key": key}, timeout=30)
        assert (answer.status_code, answer.json()["code"]) == (503, "STORE_ACCESS_DENIED")
        eventually_blocking(lambda: server.output.count("not accepted") >= 3, explain=log_end)
        account.accept()
        eventually_blocking(lambda: ready().status_code == 200, explain=log_end)

    assert set(seen) == {200, 503}
    lines = [json.loads(line) for line in server.output.splitlines()]
    assert not [line for line in lines if "exception" in line], server.output
    told = Counter(
        (line["event"], line.get("loop"), line.get("part"))
        for line in lines
        if "not accepted" in str(line.get("reason"))
    )
    assert set(told.values()) == {1}, told
