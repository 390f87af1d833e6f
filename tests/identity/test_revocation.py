"""Revocation across processes, and no secret left in storage or logs (S6)."""

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from httpx import AsyncClient

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity import audit
from refract.identity.models import User
from refract.web.formats import format_datetime
from tests import make
from tests.access.identities import ISSUERS
from tests.client import by_cookie, by_key, client_of, on_sqlite
from tests.conftest import make_settings
from tests.dump import dump
from tests.identity.issuer import CLIENT, bearer, claims, publish, sign

IP = "198.51.100.77"


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        issuers=ISSUERS,
        signin_links="on",
        trusted_proxies="127.0.0.1/32",
    )


@pytest.fixture
async def elsewhere(rt: Runtime, clock: ManualClock) -> AsyncIterator[AsyncClient]:
    """Return another process on the same database: its own connections and memory."""
    other = Runtime(
        settings=rt.settings,
        db=Database(rt.settings),
        clock=clock,
        ids=SnowflakeGenerator(2, clock),
        secret=rt.secret,
    )
    app = WebNode(other)
    async with client_of(app) as client:
        yield client
    assert app.engine is not None
    app.engine.spool.close()
    await other.close()
    await other.db.close()


async def test_what_is_withdrawn_here_is_refused_there_with_the_next_request(
    rt: Runtime, client: AsyncClient, elsewhere: AsyncClient, clock: ManualClock
) -> None:
    """A key, a session and a user: none is cached beyond a request, so a second is enough."""
    await publish(rt)
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        root = by_key(await make.key(session, rt, await make.admin(session, rt), *make.ALL))
        here, there = [by_cookie(rt, await make.cookie(session, rt, ada)) for _ in range(2)]
        keys = [by_key(await make.key(session, rt, ada)) for _ in range(2)]
    token = bearer(sign(claims(clock.now(), sub="ada", aud=CLIENT)))

    async def seen(headers: dict[str, str]) -> list[int]:
        return [
            (await process.get("/api/v1/me", headers=headers)).status_code
            for process in (client, elsewhere)
        ]

    assert [await seen(headers) for headers in (here, there, *keys, token)] == [[200, 200]] * 5
    listed = (await client.get("/api/v1/keys", headers=here)).json()["items"]
    first = next(key for key in listed if keys[0]["X-API-Key"].startswith(key["prefix"]))
    assert (await client.delete(f"/api/v1/keys/{first['id']}", headers=here)).status_code == 204
    assert (await client.delete("/api/v1/me/sessions", headers=here)).status_code == 204
    assert [await seen(headers) for headers in (keys[0], there, keys[1])] == [
        [401, 401],
        [401, 401],
        [200, 200],
    ]
    assert (
        await client.patch(
            f"/api/v1/admin/users/{ada.id}", headers=root, json={"status": "suspended"}
        )
    ).status_code == 200
    assert [await seen(headers) for headers in (keys[1], here, token)] == [[401, 401]] * 3


@on_sqlite
async def test_no_secret_and_no_address_stays_behind(
    rt: Runtime,
    app: WebNode,
    client: AsyncClient,
    clock: ManualClock,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """S6: use a key, cookie, token, sign-in link and IP address, then search everything stored."""
    await publish(rt)
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        cookie = await make.cookie(session, rt, ada)
        link = await make.signin_link(session, rt, ada)
        await make.link(session, rt, ada, name="roadmap")
        await make.link(session, rt, ada, name="hidden", visibility="secure")
    made = await client.post(
        "/api/v1/keys",
        headers=by_cookie(rt, cookie) | {"Idempotency-Key": "k"},
        json={"name": "canary"},
    )
    key, token = made.json()["key"], sign(claims(clock.now(), sub="ada", aud=CLIENT))
    secrets = [cookie, key, token, link.rpartition("/")[2]]
    doors = [
        "/",
        "/roadmap",
        "/roadmap+",
        "/hidden",
        "/api/v1/me",
        "/api/v1/links",
        "/app/settings",
        "/auth/oidc/work",
        "/nothing",
        "/ready",
    ]
    for path in doors:
        for headers in (by_cookie(rt, cookie), by_key(key), bearer(key), bearer(token)):
            await client.get(
                path,
                headers=headers
                | {
                    "X-Forwarded-For": IP,
                    "User-Agent": "Test",
                    "Referer": f"https://x.test/?k={key}",
                },
            )
    for wrong in (key[:-1] + "!", token + "x"):
        await client.get("/api/v1/me", headers=bearer(wrong) | {"X-Forwarded-For": IP})
    await client.get(
        f"/auth/oidc/work/callback?code={key}&state={token}", headers={"X-Forwarded-For": IP}
    )
    started = await client.get("/auth/oidc/work")
    attempt = started.headers["set-cookie"].partition("=")[2].partition(";")[0]
    out = await client.post(
        link, headers={"Origin": rt.settings.public_url, "Cookie": f"refract_sign_in={attempt}"}
    )
    assert out.status_code == 303
    await app.api.state.key_usage.flush()
    assert app.engine is not None

    kept = await dump(rt) + json.dumps(capsys.readouterr())
    for file in rt.settings.effective_spool_dir.rglob("*"):
        kept += file.read_bytes().decode("latin-1") if file.is_file() else ""

    assert [secret[:12] for secret in (*secrets, attempt, IP) if secret in kept] == []
    assert key[:16] in kept, (
        "its first characters are kept, so the search would have found the rest"
    )


@on_sqlite
async def test_the_time_zone_follows_the_browser_until_one_is_chosen(
    rt: Runtime, client: AsyncClient
) -> None:
    """The form used to store UTC with every other change (walk through the screens, finding 7)."""
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}

    async def save(**form: str) -> str | None:
        saved = await client.post(
            "/app/settings/profile", headers=browser, data={"nickname": "Ada"} | form
        )
        assert saved.status_code == 303
        me = (await client.get("/api/v1/me", headers=browser)).json()
        zone: str | None = me["preferences"]["time_zone"]
        return zone

    assert (
        '<option value="browser" selected>Same as browser</option>'
        in (await client.get("/app/settings", headers=browser))
        .text.partition('name="time_zone"')[2]
        .partition("</select>")[0]
    )
    assert await save(time_zone="browser") is None
    assert await save(time_zone="Asia/Tokyo") == "Asia/Tokyo"
    assert await save() == "Asia/Tokyo", "a form without the field leaves it alone"
    assert await save(time_zone="browser") is None


@on_sqlite
async def test_pages_write_times_in_the_chosen_zone(
    rt: Runtime, client: AsyncClient, root: User
) -> None:
    """Finding: without script all times were in UTC, with it in the zone of the browser."""
    async with rt.db.write() as session:
        await audit.record_event(session, rt, "signed_in", actor=root)
        browser = by_cookie(rt, await make.cookie(session, rt, root)) | {"Accept": "text/html"}

    async def read(zone: str, cookie: str = "") -> str:
        form = {"nickname": "Ada", "time_zone": zone}
        saved = await client.post("/app/settings/profile", headers=browser, data=form)
        assert saved.status_code == 303
        cookies = {"Cookie": f"{browser['Cookie']}; refract_zone={cookie}"}
        return (await client.get("/app/admin/audit", headers=browser | cookies)).text

    def check(page: str, zone: tzinfo) -> None:
        found = re.findall(r'<time datetime="([^"]+)" data-moment="time">([^<]+)<', page)
        expected = [format_datetime(datetime.fromisoformat(at), zone) for at, _ in found]
        assert found
        assert [words for _, words in found] == expected

    page = await read("Asia/Tokyo", "Europe%2FBerlin")
    assert 'data-zone="Asia/Tokyo"' in page
    check(page, ZoneInfo("Asia/Tokyo"))
    page = await read("browser", "Europe%2FBerlin")
    assert "data-zone" not in page  # scripts know the browser's
    check(page, ZoneInfo("Europe/Berlin"))
    check(await read("browser", "..%2Fetc"), UTC)


@on_sqlite
async def test_a_key_needs_a_name(rt: Runtime, client: AsyncClient) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada")
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}

    answer = await client.post(
        "/app/settings/keys", headers=browser, data={"name": " ", "scope": "read"}
    )

    assert answer.status_code == 422
    assert "String should have" not in answer.text
    assert "Enter a name" in answer.text


@on_sqlite
async def test_each_section_of_settings_saves_its_own_fields(
    rt: Runtime, client: AsyncClient
) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada", nickname="Ada")
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}
    for section, form, path in (
        ("preferences", {"time_zone": "Asia/Tokyo"}, "preferences"),
        ("suggestions", {"language": "zh", "auto_confirm": "0.8"}, "suggestions"),
        ("profile", {"nickname": "Countess", "bio": "Engines."}, "profile"),
    ):
        saved = await client.post(
            "/app/settings/profile", headers=browser, data=form | {"section": section}
        )
        assert saved.status_code == 303
        assert saved.headers["location"] == f"/app/settings#{path}-section"
    me = (await client.get("/api/v1/me", headers=browser)).json()
    assert (me["nickname"], me["bio"]) == ("Countess", "Engines.")
    assert me["preferences"]["time_zone"] == "Asia/Tokyo"
    assert (me["preferences"]["language"], me["preferences"]["suggestions"]) == ("zh", False)


@on_sqlite
async def test_the_profile_form_keeps_what_was_typed_and_says_what_is_wrong(
    rt: Runtime, client: AsyncClient
) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt, "ada", nickname="Old")
        browser = by_cookie(rt, await make.cookie(session, rt, ada)) | {"Accept": "text/html"}
    form = {
        "nickname": "Countess",
        "bio": "",
        "time_zone": "Europe/Berlin",
        "language": "zh",
    }
    wrong = await client.post(
        "/app/settings/profile", headers=browser, data=form | {"bio": "x" * 201}
    )
    assert (wrong.status_code, "Countess" in wrong.text, "field-error" in wrong.text) == (
        422,
        True,
        True,
    )
    for sure in ("0.4", "certain"):
        unsure = await client.post(
            "/app/settings/profile",
            headers=browser,
            data=form | {"auto_confirm": sure},
        )
        assert (unsure.status_code, "field-error" in unsure.text) == (422, True)
    right = await client.post(
        "/app/settings/profile",
        headers=browser,
        data=form | {"auto_confirm": "0.8"},
    )
    assert right.status_code == 303
    assert 'value="0.8" selected' in (await client.get("/app/settings", headers=browser)).text
    assert (
        await client.post("/app/settings/profile", headers=browser, data=form)
    ).status_code == 303
    assert 'value="0.8" selected' in (await client.get("/app/settings", headers=browser)).text, (
        "a form without the field leaves it alone"
    )
    await client.patch("/api/v1/me", headers=browser, json={"preferences": {"auto_confirm": 0.75}})
    assert 'value="0.75" selected' in (await client.get("/app/settings", headers=browser)).text, (
        "also what no list offers"
    )
    right = await client.post(
        "/app/settings/profile",
        headers=browser,
        data=form | {"auto_confirm": "never"},
    )
    assert right.status_code == 303
    unsure = await client.post("/app/settings/delete", headers=browser, data={"confirm": "yes"})
    assert (unsure.status_code, "Type “delete” to confirm" in unsure.text) == (422, True)
    async with rt.db.read() as reading:
        row = await reading.get_one(User, ada.id)
    assert (row.nickname, row.preferences) == ("Countess", {
        "language": "zh", "time_zone": "Europe/Berlin", "suggestions": False, "auto_confirm": None,
    })  # fmt: skip
