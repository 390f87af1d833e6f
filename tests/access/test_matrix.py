"""S1: every route × every identity. No unexpected success, and what is foreign looks absent."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient, Response
from sqlalchemy import update

from proofs.security import COUNTED
from refract.app import WebNode, list_routes
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.lists.models import LinkList
from refract.migrations.tables import metadata
from tests import make
from tests.access.identities import ISSUERS, SavedRows, Who, World, make_world, populate
from tests.access.matrix import (
    FINE,
    FORBIDDEN,
    HIDDEN,
    ROWS,
    SEEN,
    SIGN_IN,
    UNKNOWN,
    Outcome,
    Row,
)
from tests.access.objects import absent_path, parameters_of, real_path
from tests.client import by_cookie, client_of, on_sqlite
from tests.conftest import make_settings

pytestmark = on_sqlite


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        issuers=ISSUERS,
        signin_links="on",
        security_contact="mailto:s@go.test",
    )


NINE = (
    Who.STRANGER,
    Who.OWNER,
    Who.CO_OWNER,
    Who.RECIPIENT,
    Who.OTHER,
    Who.SUSPENDED,
    Who.OWNER_READ_ONLY,
    Who.OWNER_REVOKED,
    Who.ADMIN,
)
REFUSALS = {SIGN_IN: 401, FORBIDDEN: 403, SEEN: 403, HIDDEN: 404, UNKNOWN: 404}


async def test_every_route_has_a_row_and_every_row_a_route(app: WebNode) -> None:
    routed = {f"{method} {path}" for method, path in list_routes(app.api)}

    assert set(NINE) <= set(Who), (
        "the nine that are promised, and others that were found worth asking about"
    )
    assert [route for route, row in ROWS.items() if set(row.profile.outcomes) != set(Who)] == []
    without_row = sorted(routed - set(ROWS))
    without_route = sorted(set(ROWS) - routed)

    assert not without_row, (
        f"No row says who may use {', '.join(without_row)}. Add to ROWS in tests/access/matrix.py,"
        " for each: "
        f'"METHOD /path": Row(PROFILE), with a body (json= or form=) that succeeds, and'
        f" @object_for(…) in tests/access/objects.py "
        f"for a path parameter that is new."
    )
    assert not without_route, (
        f"Rows in tests/access/matrix.py for routes that are gone: {', '.join(without_route)}."
        " Remove them."
    )


@pytest.mark.parametrize("route", ROWS)
async def test_nobody_gets_more_or_less_than_the_row_says(
    rt: Runtime, app: WebNode, route: str, record_property: Callable[[str, object], None]
) -> None:
    record_property(COUNTED, len(ROWS[route].profile.outcomes))
    wrong = []
    world, path = await populate(rt), None
    uses_up = ROWS[route].once or (bool(parameters_of(route)) and not route.startswith("GET "))
    with closing(SavedRows()) as rows:
        async with client_of(app) as client:
            for who, expected in ROWS[route].profile.outcomes.items():
                if ROWS[route].last:
                    world, path = await _a_new_world(rt), None
                if who in (Who.OWNER_IN_BROWSER, Who.OWNER_UNPROVEN):
                    world = await _fresh_session(world)
                if path is None:
                    path = await real_path(world, route.split(" ")[1])
                    if uses_up:
                        rows.save(rt)
                response = await _ask(client, world, who, route, path)
                if expected is FINE and uses_up:
                    rows.restore(rt)  # a refused request leaves its objects for the next identity
                if not _is(response, expected):
                    wrong.append(
                        f"{who}: expected {expected.value}, got {response.status_code}"
                        f" {response.text[:200]}"
                    )
    assert not wrong, "\n".join([route, *wrong])


@pytest.mark.parametrize("route", [route for route in ROWS if parameters_of(route)])
async def test_a_foreign_object_looks_exactly_like_an_absent_one(
    rt: Runtime, app: WebNode, route: str
) -> None:
    world = await populate(rt)
    method_path = route.split(" ")[1]
    real = await real_path(world, method_path)
    async with client_of(app) as client:
        for who, expected in ROWS[route].profile.outcomes.items():
            if expected in (SIGN_IN, FORBIDDEN, HIDDEN):
                foreign = await _ask(client, world, who, route, real)
                absent = await _ask(client, world, who, route, absent_path(method_path))
                assert _told(foreign, real) == _told(absent, absent_path(method_path)), (
                    f"{who} can tell by {route} what exists"
                )


@pytest.mark.parametrize(
    "route",
    [route for route in ROWS if "/lists/{list_id}" in route and "/admin/" not in route],
)
async def test_a_list_of_a_team_is_for_its_members(rt: Runtime, app: WebNode, route: str) -> None:
    """Managers and members get what the owner of a list gets, but only managers transfer it."""
    transfers, outcomes = route.endswith("/transfer"), ROWS[route].profile.outcomes
    expected = {
        Who.MANAGER: FINE,
        Who.MEMBER: SEEN if transfers else FINE,
        Who.FORMER_MEMBER: outcomes[Who.OTHER],
        Who.OWNER: outcomes[Who.OTHER],
        Who.TEAM_KEY: FORBIDDEN if "/app/" in route else UNKNOWN if transfers else FINE,
        Who.STRANGER: outcomes[Who.STRANGER],
    }
    wrong, world = [], await populate(rt)
    async with client_of(app) as client:
        for who, outcome in expected.items():
            path = await real_path(world, route.split(" ")[1])
            async with rt.db.write() as session:
                given = {"team_id": world.crew.id, "owner_id": None}
                await session.execute(update(LinkList).values(given))
            response = await _ask(client, world, who, route, path)
            if not _is(response, outcome):
                wrong.append(f"{who}: expected {outcome.value}, got {response.text[:200]}")
    assert not wrong, "\n".join([route, *wrong])


async def test_an_administrators_browser_needs_proof_too(rt: Runtime, app: WebNode) -> None:
    """The matrix knows the owner's browser.

    A forged form is most tempting against an administrator.
    """
    world = await populate(rt)
    async with rt.db.write() as session:
        headers = by_cookie(rt, await make.cookie(session, rt, world.admin), proven=False)
    async with client_of(app) as client:
        for route, row in ROWS.items():
            method, path = route.split(" ")
            if row.profile.outcomes[Who.OWNER_UNPROVEN] == FORBIDDEN and method != "GET":
                response = await client.request(
                    method,
                    absent_path(path),
                    headers=headers,
                    json=row.body,
                    data=row.fields,
                    files=row.files,
                    params=row.query,
                )
                assert response.status_code == 403, route


async def _a_new_world(rt: Runtime) -> World:
    async with rt.db.write() as session:
        for table in reversed(metadata.sorted_tables):
            await session.execute(table.delete())
    return await make_world(rt)


async def _fresh_session(world: World) -> World:
    async with world.rt.db.write() as session:
        cookie = await make.cookie(session, world.rt, world.owner)
    browsers = {
        Who.OWNER_IN_BROWSER: by_cookie(world.rt, cookie),
        Who.OWNER_UNPROVEN: by_cookie(world.rt, cookie, proven=False),
    }
    return replace(world, headers=world.headers | browsers)


async def _ask(client: AsyncClient, world: World, who: Who, route: str, path: str) -> Response:
    row: Row = ROWS[route]
    method, _, _ = route.partition(" ")
    return await client.request(
        method,
        path,
        headers=world.headers[who],
        json=row.body,
        data=row.fields,
        files=row.files,
        params=row.query,
    )


def _is(response: Response, expected: Outcome) -> bool:
    if expected is FINE:
        sent_away = response.headers.get("location", "").startswith("/auth/")
        return 200 <= response.status_code < 400 and not sent_away
    return response.status_code == REFUSALS[expected]


def _told(response: Response, path: str) -> tuple[int, dict[str, Any], list[str]]:
    """Everything an onlooker learns, apart from what every answer has of its own.

    The path that was asked for, and the name at its end, are no news.
    """
    name_asked = path.rsplit("/", 1)[1]
    body = response.json()
    assert body.pop("request_id") == response.headers["x-request-id"]
    text = {
        name: value.replace(path, "").replace(name_asked, "") if isinstance(value, str) else value
        for name, value in body.items()
    }
    return response.status_code, text, sorted(response.headers)
