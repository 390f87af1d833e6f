"""The helper that starts real services for all other tests."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncmy
import asyncpg
import pytest
import redis.asyncio

from tests.waiting import PATIENCE, eventually_blocking
from tools import processes
from tools.services import STATE, VARIABLES, Services, attach, services

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, str(ROOT / "tools/services.py"), "run"]
SERVERS = ("postgresql", "mysql", "redis")
# Without the variables of the run around this test: here everything must be started anew.
CLEAN = {key: value for key, value in os.environ.items() if key not in {*VARIABLES.values(), STATE}}


@pytest.fixture(scope="module")
def own() -> Iterator[Services]:
    with pytest.MonkeyPatch.context() as patch:
        for variable in VARIABLES.values():
            patch.delenv(variable, raising=False)
        with services(SERVERS) as started:
            for name, why in started.absent.items():
                pytest.skip(f"absent service: {name} ({why})")
            yield started


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_postgresql_answers_in_utf8(own: Services) -> None:
    connection = await asyncpg.connect(own.postgresql.url)
    try:
        assert await connection.fetchval("SHOW server_encoding") == "UTF8"
        assert await connection.fetchval("SHOW max_connections") == "300"
        await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        assert await connection.fetchval("SELECT array_length(show_trgm('链接'), 1)") > 0
    finally:
        await connection.close()


async def test_mariadb_answers_in_utf8mb4(own: Services) -> None:
    connection = await asyncmy.connect(
        host="127.0.0.1", port=own.mysql.port, user="root", db="refract"
    )
    async with connection, connection.cursor() as cursor:
        await cursor.execute("SELECT @@character_set_database, @@max_connections")
        assert await cursor.fetchone() == ("utf8mb4", 300)


async def test_redis_answers_and_forgets_when_restarted(own: Services) -> None:
    async with redis.asyncio.Redis.from_url(own.redis.url) as client:
        await client.set("key", "value")
        assert await client.get("key") == b"value"
    own.redis.restart()
    async with redis.asyncio.Redis.from_url(own.redis.url) as client:
        assert await client.get("key") is None


@pytest.mark.parametrize("name", SERVERS)
def test_no_server_runs_as_root(own: Services, name: str) -> None:
    pid = own.server(name).pid
    assert pid is not None
    owner = Path(f"/proc/{pid}").stat().st_uid
    assert owner != 0
    assert os.geteuid() in {0, owner}


async def test_a_killed_postgresql_comes_back_with_what_it_had_committed(own: Services) -> None:
    connection = await asyncpg.connect(own.postgresql.url)
    await connection.execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (1)")
    other = attach(own.file).postgresql  # as another process would see it

    other.kill()
    connection.terminate()
    assert not own.postgresql.running
    assert not listening(own.postgresql.port)

    other.start()
    connection = await asyncpg.connect(own.postgresql.url)
    try:
        assert await connection.fetchval("SELECT id FROM kept") == 1
    finally:
        await connection.close()


async def test_a_killed_mariadb_comes_back_with_what_it_had_committed(own: Services) -> None:
    async def connect() -> asyncmy.Connection:
        return await asyncmy.connect(
            host="127.0.0.1", port=own.mysql.port, user="root", db="refract", autocommit=True
        )

    connection = await connect()
    async with connection.cursor() as cursor:
        await cursor.execute("CREATE TABLE kept (id int)")
        await cursor.execute("INSERT INTO kept VALUES (1)")

    own.mysql.kill()
    connection.close()
    own.mysql.start()

    async with await connect() as connection, connection.cursor() as cursor:
        await cursor.execute("SELECT id FROM kept")
        assert await cursor.fetchone() == (1,)


def test_run_hands_on_addresses_and_exit_code_and_leaves_nothing() -> None:
    script = (
        f"import os; print(os.environ['{STATE}'], os.environ['REFRACT_TEST_REDIS_URL']); raise"
        " SystemExit(7)"
    )
    command = [*COMMAND, "--only", "redis", "--", sys.executable, "-c", script]
    done = subprocess.run(command, check=False, env=CLEAN, capture_output=True, text=True)

    assert done.returncode == 7, done.stderr
    state, url = done.stdout.split()
    assert not Path(state).parent.exists()
    assert not listening(int(url.rpartition(":")[2].split("/")[0]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_lingers_when_the_starter_is_stopped_or_killed(number: int) -> None:
    script = (
        f"import os, time; print(os.environ['{STATE}'], os.getpid(), flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [*COMMAND, "--only", "redis,postgresql", "--", sys.executable, "-c", script],
        env=CLEAN,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        file, command = starter.stdout.readline().split()
        state = Path(file)
        pids = [server.pid for server in attach(state).servers.values()]
        assert all(pids), pids
        starter.send_signal(number)
        starter.wait(PATIENCE)
    processes.send(int(command), signal.SIGTERM)  # after SIGKILL nobody else tells it

    eventually_blocking(lambda: not state.parent.exists())
    assert not any(processes.alive(pid) for pid in pids if pid)


def test_a_service_given_by_a_variable_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFRACT_TEST_REDIS_URL", "redis://elsewhere:6379/0")
    with services(["redis"]) as found:
        assert found.environment()["REFRACT_TEST_REDIS_URL"] == "redis://elsewhere:6379/0"
        with pytest.raises(LookupError):
            found.server("redis")
