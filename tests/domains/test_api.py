"""Administration of domains by the API."""

from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.domains.models import Domain
from refract.identity.models import AuditEntry, User
from refract.links.models import FeedEntry
from tests import make
from tests.client import on_sqlite
from tests.people import Headers

API = "/api/v1/domains"


async def create(client: AsyncClient, headers: Headers, **given: Any) -> dict[str, Any]:
    response = await client.post(API, headers=headers, json={"host": "sho.rt", **given})
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    assert response.headers["location"] == f"{API}/{made['host']}"
    return made


async def listed(client: AsyncClient, headers: Headers) -> list[str]:
    response = await client.get(API, headers=headers)
    return [domain["host"] for domain in response.json()["items"]]


async def test_a_domain_is_created_read_and_listed(client: AsyncClient, as_root: Headers) -> None:
    made = await create(
        client,
        as_root,
        title=" Spring ",
        root_destination="https://www.example.com",
        default_redirect_status=301,
    )

    assert made["title"] == "Spring"
    assert made["root_destination"] == "https://www.example.com/"
    assert (made["state"], made["creators"], made["version"]) == ("active", "everyone", 1)
    assert (made["url"], made["links"], made["lists"]) == ("http://sho.rt", 0, 0)
    assert made["default_redirect_status"] == 301
    read = await client.get(f"{API}/SHO.rt", headers=as_root)
    assert read.json() == made
    assert read.headers["etag"].startswith('"1')
    page = (await client.get(API, headers=as_root)).json()
    assert page == {"default_domain": "go.test", "items": [made], "next_cursor": None}


@on_sqlite
@pytest.mark.parametrize(
    ("typed", "host"),
    [
        ("Sho.RT", "sho.rt"),
        ("sho.rt.", "sho.rt"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("a.localhost", "a.localhost"),
        ("127.0.0.2", "127.0.0.2"),
    ],
)
async def test_a_host_is_kept_in_lower_case_ascii(
    client: AsyncClient, as_root: Headers, typed: str, host: str
) -> None:
    assert (await create(client, as_root, host=typed))["host"] == host


@on_sqlite
@pytest.mark.parametrize(
    "typed",
    [
        *("", "short", "https://sho.rt", "sho.rt/", "sho.rt/path", "sho.rt?x", "a@sho.rt", "a b.c"),
        *(
            "192.0.2.1",
            "127.0.0.1",
            "localhost",
            "[::1]",
            "[2001:db8::1]",
            "8.8.8.8",
            "1.2",
            "0x7f.1.2.3.4",
            "sho.rt:8443",
            "sho.rt:0",
        ),
        *("-a.example", "a-.example", "a..example", ".example", "a_b.example", "x" * 64 + ".com"),
        *("xn--a.example", "ex\u00adample.com/", "\u202ea.example", "a." * 130 + "com"),
    ],
)
async def test_what_is_no_host_is_refused(
    client: AsyncClient, as_root: Headers, typed: str
) -> None:
    response = await client.post(API, headers=as_root, json={"host": typed})

    assert (response.status_code, response.json()["code"]) == (422, "INVALID_DOMAIN_HOST"), typed


@on_sqlite
async def test_the_default_domain_can_not_be_added(client: AsyncClient, as_root: Headers) -> None:
    response = await client.post(API, headers=as_root, json={"host": "GO.test"})

    assert (response.status_code, response.json()["code"]) == (409, "DOMAIN_IS_DEFAULT")


async def test_a_host_is_added_once(client: AsyncClient, as_root: Headers) -> None:
    await create(client, as_root)

    again = await client.post(API, headers=as_root, json={"host": "Sho.rt"})

    assert (again.status_code, again.json()["code"]) == (409, "DOMAIN_EXISTS")


@on_sqlite
async def test_a_repeated_request_creates_once(client: AsyncClient, as_root: Headers) -> None:
    headers = as_root | {"Idempotency-Key": "once"}

    assert await create(client, headers) == await create(client, headers)


async def test_changes_need_the_current_version(client: AsyncClient, as_root: Headers) -> None:
    await create(client, as_root, title="Spring")
    path, at = f"{API}/sho.rt", {"If-Match": '"1"'}

    changed = await client.patch(path, headers=as_root | at, json={"title": None})
    late = await client.patch(path, headers=as_root | at, json={"title": "Late"})
    gone = await client.delete(path, headers=as_root | at)

    assert (changed.json()["title"], changed.json()["version"]) == (None, 2)
    assert (late.status_code, gone.status_code) == (412, 412)
    same = await client.patch(path, headers=as_root, json={"title": None})
    assert same.json()["version"] == 2


async def test_every_change_is_audited_and_told_to_every_process(
    client: AsyncClient, rt: Runtime, as_root: Headers, root: User
) -> None:
    await create(client, as_root)
    path = f"{API}/sho.rt"
    await client.patch(path, headers=as_root, json={"title": "Spring", "creators": "everyone"})
    await client.patch(path, headers=as_root, json={"title": "Spring"})
    await client.patch(path, headers=as_root, json={"state": "disabled"})
    await client.patch(path, headers=as_root, json={"state": "active"})
    assert (await client.delete(path, headers=as_root)).status_code == 204

    async with rt.db.read() as session:
        entries = await session.scalars(
            select(AuditEntry).where(AuditEntry.action.like("domain.%")).order_by(AuditEntry.id)
        )
        found = [(entry.action, entry.detail) for entry in entries if entry.target == "sho.rt"]
        told = list(await session.scalars(select(FeedEntry)))
    assert found == [
        ("domain.created", None),
        ("domain.changed", "title"),
        ("domain.disabled", "state"),
        ("domain.enabled", "state"),
        ("domain.deleted", None),
    ]
    assert len(told) == 5


async def test_only_those_who_may_create_on_a_domain_see_it(
    client: AsyncClient, rt: Runtime, as_root: Headers, as_ada: Headers, as_bob: Headers, ada: User
) -> None:
    async with rt.db.write() as session:
        team = await make.team(session, rt, ada, name="Campaigns")
    await create(client, as_root, host="all.example")
    await create(client, as_root, host="team.example", creators="team", team=team.slug)
    await create(client, as_root, host="root.example", creators="administrators")
    await create(client, as_root, host="off.example")
    await client.patch(f"{API}/off.example", headers=as_root, json={"state": "disabled"})

    assert await listed(client, as_ada) == ["all.example", "team.example"]
    assert await listed(client, as_bob) == ["all.example"]
    assert len(await listed(client, as_root)) == 4
    seen = (await client.get(f"{API}/team.example", headers=as_ada)).json()
    assert (seen["team"], seen["links"], seen["lists"]) == (team.slug, None, None)
    for host in ("team.example", "root.example", "off.example", "nothing.example"):
        assert (await client.get(f"{API}/{host}", headers=as_bob)).status_code == 404
    first = (await client.get(API, headers=as_root, params={"limit": 3})).json()
    rest = await client.get(API, headers=as_root, params={"cursor": first["next_cursor"]})
    assert [domain["host"] for domain in rest.json()["items"]] == ["team.example"]


async def test_a_team_must_exist_and_is_left_out_otherwise(
    client: AsyncClient, rt: Runtime, as_root: Headers, ada: User
) -> None:
    async with rt.db.write() as session:
        slug = (await make.team(session, rt, ada, name="Campaigns")).slug

    async def refused(**given: Any) -> str:
        response = await client.post(API, headers=as_root, json={"host": "sho.rt", **given})
        return str(response.json()["code"])

    assert await refused(creators="team") == "DOMAIN_TEAM_REQUIRED"
    assert await refused(creators="team", team="nobody") == "TEAM_NOT_FOUND"
    assert (await create(client, as_root, team=slug))["team"] is None
    path = f"{API}/sho.rt"
    given = await client.patch(path, headers=as_root, json={"creators": "team", "team": slug})
    kept = await client.patch(path, headers=as_root, json={"creators": "team"})
    assert (given.json()["team"], kept.json()["version"]) == (slug, 2)
    taken = await client.patch(path, headers=as_root, json={"creators": "everyone"})
    assert taken.json()["team"] is None


async def test_the_domain_of_a_deleted_team_is_left_to_administrators(
    client: AsyncClient, rt: Runtime, as_root: Headers, ada: User
) -> None:
    async with rt.db.write() as session:
        team = await make.team(session, rt, ada, name="Campaigns")
    await create(client, as_root, creators="team", team=team.slug)

    assert (await client.delete(f"/api/v1/teams/{team.id}", headers=as_root)).status_code == 204

    left = (await client.get(f"{API}/sho.rt", headers=as_root)).json()
    assert (left["creators"], left["team"], left["version"]) == ("administrators", None, 2)


@on_sqlite
@pytest.mark.parametrize(
    "fields",
    [
        {"root_destination": "ftp://example.com"},
        {"unknown_destination": "http://go.test/somewhere"},
        {"gone_destination": "https://example.com/{1}"},
        {"gone_destination": "https://аррӏе.com"},
    ],
)
async def test_fallbacks_pass_the_checks_of_destinations(
    client: AsyncClient, as_root: Headers, fields: dict[str, str]
) -> None:
    await create(client, as_root)

    made = await client.post(API, headers=as_root, json={"host": "other.example", **fields})
    changed = await client.patch(f"{API}/sho.rt", headers=as_root, json=fields)

    for response in (made, changed):
        assert (response.status_code, response.json()["code"]) == (422, "INVALID_FALLBACK")
        assert [error["field"] for error in response.json()["errors"]] == list(fields)


async def test_a_domain_with_something_on_it_is_not_deleted(
    client: AsyncClient, rt: Runtime, as_root: Headers, ada: User
) -> None:
    await create(client, as_root)
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada)
        link.domain = "sho.rt"

    refused = await client.delete(f"{API}/sho.rt", headers=as_root)

    assert (refused.status_code, refused.json()["code"]) == (409, "DOMAIN_NOT_EMPTY")
    assert "(1)" in refused.json()["detail"]
    assert (await client.get(f"{API}/sho.rt", headers=as_root)).json()["links"] == 1


@on_sqlite
async def test_a_page_has_a_fixed_number_of_queries(
    client: AsyncClient, rt: Runtime, as_root: Headers
) -> None:
    counts: set[int] = set()
    for number in range(3):
        await create(client, as_root, host=f"d{number}.example")
        seen: list[str] = []
        stop = count_statements(rt.db.read_engine, seen.append)
        assert len(await listed(client, as_root)) == number + 1
        stop()
        counts.add(len(seen))
    assert len(counts) == 1


@on_sqlite
async def test_nobody_else_changes_domains(
    client: AsyncClient, rt: Runtime, as_root: Headers, as_ada: Headers
) -> None:
    await create(client, as_root)

    answers = [
        await client.post(API, headers=as_ada, json={"host": "mine.example"}),
        await client.patch(f"{API}/sho.rt", headers=as_ada, json={"title": "Mine"}),
        await client.delete(f"{API}/sho.rt", headers=as_ada),
    ]

    assert [answer.json()["code"] for answer in answers] == ["ADMIN_REQUIRED"] * 3
    async with rt.db.read() as session:
        assert [domain.title for domain in await session.scalars(select(Domain))] == [None]
