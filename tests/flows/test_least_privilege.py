"""Database users with no more rights than their role: made by one command, and enough to run on."""

import asyncio
import os
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import make_url, text, update
from sqlalchemy.exc import DBAPIError

from refract import migrations
from refract.core.db.session import Database, WriteSession
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import BrowserSession
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListMaker
from refract.migrations.grants import INGEST_READ_TABLES
from refract.migrations.tables import list_ingest_tables, list_redirect_tables, metadata
from tests import make
from tests.redirect.outside import Outside
from tests.services_plugin import address_of
from tests.serving import refract, serving
from tests.waiting import PATIENCE, eventually_blocking

ACCOUNTS = ("web", "redirect", "ingest")
SECRET = "p'ss%40:word"


def _run(url: str, scratch: Path, *statements: str) -> None:
    async def go() -> None:
        db = Database(Settings(data_dir=scratch, database_url=url))
        try:
            async with db.engine.connect() as connection:
                plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
                for statement in statements:
                    await plain.execute(text(statement.replace(":", "\\:")))
        finally:
            await db.close()

    asyncio.run(go())


@pytest.fixture(params=["postgresql", "mysql"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A database of its own, and the address of it for each user; everything is removed again."""
    server, name, prefix = (
        address_of(request.param),
        f"refract_least_{os.getpid()}",
        f"least{secrets.token_hex(3)}",
    )
    _run(server, tmp_path, f"CREATE DATABASE {name}")
    mine = make_url(server).set(database=name)
    owner = mine.render_as_string(hide_password=False)
    assert (
        refract(
            "migrate", "--data-dir", str(tmp_path / "owner"), REFRACT_DATABASE_URL=owner
        ).returncode
        == 0
    )
    made = refract(
        "admin",
        "grants",
        "--apply",
        "--prefix",
        prefix,
        *(word for one in ACCOUNTS for word in ("--password", f"{one}={SECRET}")),
        "--data-dir",
        str(tmp_path / "owner"),
        REFRACT_DATABASE_URL=owner,
    )
    assert made.returncode == 0, made.stderr
    assert SECRET not in made.stdout
    users = {
        one: (
            mine.set(username=f"{prefix}_{one}", password=SECRET).render_as_string(
                hide_password=False
            )
        )
        for one in ACCOUNTS
    }
    yield {"owner": owner, **users}
    drops = [
        (
            f"DROP ROLE {prefix}_{one}"
            if request.param == "postgresql"
            else f"DROP USER {prefix}_{one}@'%'"
        )
        for one in ACCOUNTS
    ]
    _run(
        server,
        tmp_path,
        f"DROP DATABASE {name}{' WITH (FORCE)' if request.param == 'postgresql' else ''}",
        *drops,
    )


def _try(url: str, scratch: Path, *statements: str) -> list[bool]:
    """Return for each statement whether the user may run it."""

    async def go() -> list[bool]:
        db = Database(Settings(data_dir=scratch, database_url=url))
        allowed = []
        try:
            async with db.engine.connect() as connection:
                plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
                for statement in statements:
                    try:
                        await plain.execute(text(statement))
                        allowed.append(True)
                    except DBAPIError:
                        allowed.append(False)
        finally:
            await db.close()
        return allowed

    return asyncio.run(go())


def test_each_role_runs_on_a_user_that_can_do_no_more_than_it_needs(
    urls: dict[str, str], tmp_path: Path
) -> None:
    outside = Outside(tmp_path / "web", database_url=urls["web"])
    node = tmp_path / "node"
    with (
        serving(tmp_path / "web", "--role", "web", REFRACT_DATABASE_URL=urls["web"]) as web,
        serving(node, "--role", "ingest", REFRACT_DATABASE_URL=urls["ingest"]) as ingest,
        serving(node, "--role", "redirect", REFRACT_DATABASE_URL=urls["redirect"]) as redirect,
        httpx.Client(timeout=PATIENCE) as client,
    ):
        link = outside.link(name="n")
        assert [client.get(f"{redirect.url}/n").status_code for _ in range(3)] == [302] * 3
        assert client.get(f"{redirect.url}/nothing").status_code == 404
        eventually_blocking(lambda: outside.clicks(link.id) == 3)
        for one in (web, ingest, redirect):
            assert client.get(f"{one.url}/ready").json()["status"] == "ready", one.output
        assert client.get(f"{web.url}/n").status_code == 302
    for one in (web, ingest, redirect):
        assert "denied" not in one.output.lower(), one.output

    change = "UPDATE links SET title = 'x'"
    click = "UPDATE link_totals SET bot_clicks = 0"
    limit = "DELETE FROM link_limits"
    schema = "CREATE TABLE mine (id INT)"
    wishes = ("SELECT * FROM links", change, click, limit, schema)
    rights = {one: _try(urls[one], tmp_path, *wishes) for one in ACCOUNTS}
    assert rights == {
        "web": [True, True, True, True, False],
        "ingest": [False, False, True, False, False],
        "redirect": [True, False, False, True, False],
    }
    for account, readable in (
        ("redirect", list_redirect_tables()),
        ("ingest", [*list_ingest_tables(), *INGEST_READ_TABLES]),
    ):
        reads = [f"SELECT 1 FROM {table} LIMIT 1" for table in metadata.tables]  # noqa: S608 - ours
        allowed = _try(urls[account], tmp_path, *reads)
        found = {table for table, may in zip(metadata.tables, allowed, strict=True) if may}
        assert found == {*readable, "schema_requirements"}, account
    secrets_of_others = {
        "audit_log",
        "items",
        "item_pages",
        "signin_links",
        "account_invitations",
        "visitor_salts",
        "jobs",
        "click_events",
    }
    assert (
        secrets_of_others & set(list_redirect_tables()) == set()
    )  # the user of what faces the internet could read every table


def _published(outside: Outside) -> None:
    async def publish(session: WriteSession, rt: Runtime) -> None:
        who = ListMaker(outside.owner.id)
        made = await make.list_of(
            session,
            rt,
            who,
            "https://example.com/first",
            "https://example.com/second",
            title="What we read",
        )
        await lists.set_draft_slug(session, make.space(rt), who, made.id, "reading")
        await lists.publish_list(session, make.space(rt), who, made.id)

    outside.write(publish)


def test_a_redirect_node_that_may_only_read_answers_for_every_name(
    urls: dict[str, str], tmp_path: Path
) -> None:
    """Links, lists with their feeds and entries, previews, QR codes, secure links, misses.

    And it warms up by itself.
    """
    node, page = tmp_path / "node", {"accept": "text/html"}
    (tmp_path / "web").mkdir(mode=0o700)
    outside = Outside(tmp_path / "web", database_url=urls["web"])
    owner = outside.owner
    link = outside.link("https://example.com/there", name="here")
    outside.link("https://example.com/secret", name="hidden", visibility="secure")
    outside.link("https://example.com/few", name="few", click_limit=10)
    _published(outside)
    cookie = outside.write(lambda session, rt: make.cookie(session, rt, owner))
    key = outside.write(lambda session, rt: make.key(session, rt, owner))
    last_month = datetime.now(UTC) - timedelta(days=20)
    outside.write(
        lambda session, _: session.execute(update(BrowserSession).values(last_seen_at=last_month))
    )
    start: dict[str, Any] = {
        "REFRACT_DATABASE_URL": urls["redirect"],
        "REFRACT_LOG_LEVEL": "debug",
        "REFRACT_LOG_FORMAT": "json",
    }
    with serving(node, "--role", "ingest", REFRACT_DATABASE_URL=urls["ingest"]):
        with (
            serving(node, "--role", "redirect", **start) as redirect,
            httpx.Client(base_url=redirect.url, timeout=PATIENCE) as client,
        ):
            listed = client.get("/reading", headers=page)
            assert (listed.status_code, "What we read" in listed.text) == (200, True)
            assert [
                client.get(f"/reading.{feed}").status_code for feed in ("rss", "json", "md")
            ] == [200] * 3
            assert client.get("/reading/2").headers["location"] == "https://example.com/second"
            assert [
                client.get(f"/{name}").status_code
                for name in ("reading.qr", "here.qr", "here", "here+")
            ] == [200, 200, 302, 200]
            assert client.get("/here+", headers=page).status_code == 200
            person = page | {"user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"}
            followed = [client.get("/few", headers=person).status_code for _ in range(11)]
            assert followed == [302] * 10 + [410]
            assert client.get("/hidden").status_code == 401
            assert client.get("/hidden", headers=page).headers["location"] == "/auth/sign-in"
            for proof in ({"cookie": f"refract={cookie}"}, {"x-api-key": key}):
                assert (
                    client.get("/hidden", headers=proof).headers["location"]
                    == "https://example.com/secret"
                )
            missed = client.get("/heer", headers=page | {"cookie": f"refract={cookie}"})
            assert (missed.status_code, "here" in missed.text) == (404, True)
            assert [
                client.post("/here").status_code,
                client.get("/").status_code,
                client.get("/api/v1/me").status_code,
            ] == [405, 404, 404]
            eventually_blocking(lambda: outside.clicks(link.id) == 1)
        with serving(node, "--role", "redirect", **start) as again:
            eventually_blocking(lambda: '"paths": 1' in again.output)
            assert httpx.get(f"{again.url}/here", timeout=PATIENCE).status_code == 302
            assert (
                'refract_lookups_total{tier="memory"} 1.0'
                in httpx.get(f"{again.url}/metrics", timeout=PATIENCE).text
            )
    for one in (redirect, again):
        assert not [
            word
            for word in ("denied", "permission", "traceback", "background_failed")
            if word in one.output.lower()
        ], one.output


def test_statements_are_printed_in_a_transaction_and_passwords_come_from_files(
    urls: dict[str, str], tmp_path: Path
) -> None:
    """A moment without rights while psql runs them one by one.

    Passwords only as arguments, for everybody to see in `ps`.
    """
    (tmp_path / "secret").write_text("fromfile\n")
    given = ["--password", f"redirect=@{tmp_path / 'secret'}", "--password", "web=env:OF_WEB"]
    done = refract(
        "admin",
        "grants",
        *given,
        "--data-dir",
        str(tmp_path / "o"),
        REFRACT_DATABASE_URL=urls["owner"],
        OF_WEB="fromvariable",
    )
    assert done.returncode == 0, done.stderr
    assert "'fromfile'" in done.stdout
    assert "'fromvariable'" in done.stdout
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("BEGIN;", "COMMIT;") or urls["owner"].startswith("mysql")
    absent = refract(
        "admin",
        "grants",
        "--password",
        "web=@/no/such",
        "--data-dir",
        str(tmp_path / "o"),
        REFRACT_DATABASE_URL=urls["owner"],
    )
    assert (absent.returncode, "Can't read /no/such" in absent.stderr) == (2, True)


def test_a_user_that_may_not_make_users_gets_a_sentence(
    urls: dict[str, str], tmp_path: Path
) -> None:
    """It was "Something went wrong on our side.

    (sqlalchemy…) permission denied to create role [SQL: DO $do$ …".
    """
    done = refract(
        "admin",
        "grants",
        "--apply",
        "--prefix",
        "nobody",
        "--data-dir",
        str(tmp_path / "o"),
        REFRACT_DATABASE_URL=urls["web"],
    )
    assert done.returncode == 2
    assert "can't create users" in done.stderr
    assert "SQL" not in done.stderr


def test_a_user_that_may_not_migrate_is_told_who_may(urls: dict[str, str], tmp_path: Path) -> None:
    """It was "Something went wrong on our side: (sqlalchemy…) must be owner of table links [SQL.

    ALTER TABLE …]".
    """
    before, owner = migrations.list_revisions()[-2], urls["owner"]
    back = refract(
        "migrate",
        "--to",
        before,
        "--yes",
        "--data-dir",
        str(tmp_path / "owner"),
        REFRACT_DATABASE_URL=owner,
    )
    assert back.returncode == 0, back.stderr
    for words in (("serve", "--role", "web", "--port", "0"), ("migrate",), ("links", "list")):
        done = refract(
            *words, "--data-dir", str(tmp_path / "web"), REFRACT_DATABASE_URL=urls["web"]
        )
        assert (
            done.returncode,
            "Run refract migrate as the owner of the database." in done.stderr,
        ) == (2, True), done.stderr
        assert "SQL" not in done.stderr


def test_sqlite_has_no_users(tmp_path: Path) -> None:
    assert refract("migrate", "--data-dir", str(tmp_path / "data")).returncode == 0
    done = refract("admin", "grants", "--data-dir", str(tmp_path / "data"))

    assert done.returncode == 2
    assert "SQLite has no users" in done.stderr
