"""The API of links, over HTTP, on three databases."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.models import Link, LinkTotals
from refract.web.models import StoredResponse
from tests.client import on_sqlite
from tests.people import Headers

URL = "https://example.com/plans"


async def _create(client: AsyncClient, headers: Headers, **fields: Any) -> dict[str, Any]:
    response = await client.post(
        "/api/v1/links", headers=headers, json={"destination": URL, **fields}
    )
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()
    return created


async def _count(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(Link)) or 0


async def test_a_new_link_has_every_field_and_redirects(
    client: AsyncClient, as_ada: Headers
) -> None:
    created = await _create(
        client,
        as_ada,
        names=["Road-Map"],
        title="Plans",
        notes="n",
        tags=["Big Plans"],
        redirect_status=307,
    )

    assert created.keys() == {
        "id", "code", "domain", "short_url", "names", "addresses", "destination", "title",
        "notes", "tags",
        "redirect_status", "visibility", "status", "expires_at", "expired_destination", "starts_at",
        "before_destination", "click_limit", "clicks_left", "limit_destination",
        "preview_card", "qr_style", "created_at", "updated_at",
        "total_clicks", "bot_clicks", "last_clicked_at", "flagged", "flag_reason", "forward_query",
        "noindex", "version", "owners", "teams",
    }  # fmt: skip
    assert created["short_url"] == "http://go.test/Road-Map"
    assert isinstance(created["id"], str)
    for path in ("/road_map", f"/{created['code']}", "/ROAD-MAP."):
        followed = await client.get(path)
        assert (followed.status_code, followed.headers["location"]) == (307, URL), path


async def test_fifty_clients_with_one_idempotency_key_make_one_link_and_get_fifty_equal_answers(
    client: AsyncClient, rt: Runtime, as_ada: Headers
) -> None:
    headers = {**as_ada, "Idempotency-Key": "once"}
    responses = await asyncio.gather(
        *(
            client.post(
                "/api/v1/links", headers=headers, json={"destination": URL, "names": ["once"]}
            )
            for _ in range(50)
        )
    )

    assert {response.status_code for response in responses} == {201}
    assert len({response.content for response in responses}) == 1
    assert await _count(rt) == 1
    other = await client.post("/api/v1/links", headers=headers, json={"destination": URL})
    assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")


async def test_an_idempotency_key_belongs_to_one_person_and_ends_after_a_day(
    client: AsyncClient, rt: Runtime, clock: ManualClock, as_ada: Headers, as_bob: Headers
) -> None:
    for headers in (as_ada, as_bob):
        assert (
            await client.post(
                "/api/v1/links",
                headers=headers | {"Idempotency-Key": "k"},
                json={"destination": URL},
            )
        ).status_code == 201
    assert await _count(rt) == 2
    clock.advance(timedelta(hours=25).total_seconds())
    again = await client.post(
        "/api/v1/links", headers=as_ada | {"Idempotency-Key": "k"}, json={"destination": f"{URL}/2"}
    )

    assert again.status_code == 201
    assert "idempotency-replayed" not in again.headers
    assert await _count(rt) == 3


async def test_a_refused_request_does_not_use_its_idempotency_key_up(
    client: AsyncClient, rt: Runtime, as_ada: Headers
) -> None:
    await _create(client, as_ada, names=["taken"])
    headers = as_ada | {"Idempotency-Key": "k"}

    refused = await client.post(
        "/api/v1/links", headers=headers, json={"destination": URL, "names": ["taken"]}
    )
    mended = await client.post(
        "/api/v1/links", headers=headers, json={"destination": URL, "names": ["free"]}
    )

    assert (refused.status_code, refused.json()["code"]) == (409, "SLUG_TAKEN")
    assert mended.status_code == 201
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(StoredResponse)) == 1


async def test_many_wish_for_one_name_and_one_gets_it(
    client: AsyncClient, rt: Runtime, as_ada: Headers, as_bob: Headers
) -> None:
    responses = await asyncio.gather(
        *(
            client.post(
                "/api/v1/links", headers=headers, json={"destination": URL, "names": [name]}
            )
            for headers in (as_ada, as_bob)
            for name in ("Prize", "prize", "PRIZE", "prize")
        )
    )

    assert sorted(response.status_code for response in responses) == [201] + [409] * 7
    assert await _count(rt) == 1


async def test_an_edit_with_if_match_changes_only_the_version_that_was_seen(
    client: AsyncClient, as_ada: Headers
) -> None:
    link = await _create(client, as_ada)
    path = f"/api/v1/links/{link['id']}"
    seen = (await client.get(path, headers=as_ada)).headers["etag"]

    first = await client.patch(path, headers=as_ada | {"If-Match": seen}, json={"title": "one"})
    late = await client.patch(path, headers=as_ada | {"If-Match": seen}, json={"title": "two"})
    nonsense = await client.patch(path, headers=as_ada | {"If-Match": "x"}, json={"title": "three"})

    assert first.status_code == 200
    assert first.headers["etag"].startswith('"2-')
    assert (late.status_code, late.json()["code"]) == (412, "VERSION_MISMATCH")
    assert (nonsense.status_code, nonsense.json()["code"]) == (400, "INVALID_ETAG")
    assert (await client.get(path, headers=as_ada)).json()["title"] == "one"


@pytest.mark.parametrize(
    ("if_match", "status"),
    [
        ('"7", {seen}', 200),
        ('W/"7" , W/{seen}', 200),
        ('"1"', 200),
        ('"7", "8-00aa"', 412),
        ('"7", x', 400),
        ("*", 200),
    ],
)
async def test_an_edit_may_name_several_versions(
    client: AsyncClient, as_ada: Headers, if_match: str, status: int
) -> None:
    path = f"/api/v1/links/{(await _create(client, as_ada))['id']}"
    seen = (await client.get(path, headers=as_ada)).headers["etag"]
    headers = as_ada | {"If-Match": if_match.format(seen=seen)}

    assert (await client.patch(path, headers=headers, json={"title": "one"})).status_code == status


async def test_a_link_that_is_known_already_is_not_sent_again(
    rt: Runtime, client: AsyncClient, as_ada: Headers
) -> None:
    link = await _create(client, as_ada)
    path = f"/api/v1/links/{link['id']}"
    seen = (await client.get(path, headers=as_ada)).headers["etag"]
    headers = as_ada | {"If-None-Match": f'"other", {seen}'}

    known = await client.get(path, headers=headers)
    async with rt.db.write() as session:  # a click changes the link, and not its version
        session.add(LinkTotals(link_id=int(link["id"]), total_clicks=1))
    clicked = await client.get(path, headers=headers)
    written = await client.patch(path, headers=headers, json={"title": "one"})

    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", seen)
    assert (clicked.status_code, clicked.json()["total_clicks"]) == (200, 1)
    assert (written.status_code, written.json()["title"]) == (200, "one")


async def test_life_and_its_answers(
    client: AsyncClient, clock: ManualClock, as_ada: Headers
) -> None:
    end = (clock.now() + timedelta(hours=1)).isoformat()
    link = await _create(client, as_ada, names=["life"], expires_at=end)
    path = f"/api/v1/links/{link['id']}"

    async def step(name: str) -> tuple[int, str]:
        response = await client.post(f"{path}/{name}", headers=as_ada)
        return response.status_code, (
            response.json().get("status")
            if response.status_code == 200
            else response.json()["code"]
        )

    assert await step("disable") == (200, "disabled")
    assert (await client.get("/life")).status_code == 410
    assert await step("disable") == (409, "INVALID_STATE_TRANSITION")
    clock.advance(3600)
    assert await step("enable") == (409, "RENEWAL_REQUIRED")
    assert await step("renew") == (200, "disabled")
    assert await step("enable") == (200, "active")
    assert (await client.get("/life")).status_code == 302
    assert (await client.delete(path, headers=as_ada)).status_code == 204
    assert (await client.get("/life")).status_code == 410
    assert await step("undo") == (200, "active")
    assert (await client.get("/life")).status_code == 302


async def test_expiry_is_to_the_second_whatever_the_job_does(
    client: AsyncClient, clock: ManualClock, as_ada: Headers
) -> None:
    await _create(
        client,
        as_ada,
        names=["brief"],
        expires_at=(clock.now() + timedelta(seconds=10)).isoformat(),
    )

    clock.advance(9.999999)
    assert (await client.get("/brief")).status_code == 302
    clock.advance(0.000001)
    assert (await client.get("/brief")).status_code == 410


async def test_bulk_judges_each_row_by_itself(
    client: AsyncClient, rt: Runtime, as_ada: Headers
) -> None:
    await _create(client, as_ada, names=["taken"])
    rows = [
        {"destination": URL, "names": ["new"]},
        {"destination": "javascript:alert(1)"},
        {"destination": URL, "names": ["taken"]},
        {"destination": URL, "names": ["new"]},
        {"destination": URL, "surplus": 1},
        {"destination": URL, "find_if_exists": True},
    ]
    dry = (
        await client.post(
            "/api/v1/links/bulk", headers=as_ada, json={"links": rows, "dry_run": True}
        )
    ).json()
    assert await _count(rt) == 1
    real = (await client.post("/api/v1/links/bulk", headers=as_ada, json={"links": rows})).json()

    assert [row["status"] for row in real["results"]] == [201, 422, 409, 409, 422, 200]
    assert [row["status"] for row in dry["results"]] == [row["status"] for row in real["results"]]
    assert [row["error"] and row["error"]["code"] for row in real["results"]] == [
        None, "INVALID_URL", "SLUG_TAKEN", "SLUG_TAKEN", "VALIDATION_FAILED", None,
    ]  # fmt: skip
    assert (real["created"], real["failed"]) == (1, 4)
    assert await _count(rt) == 2


async def test_creations_are_limited_exactly_and_administrators_are_exempt(
    client: AsyncClient, rt: Runtime, clock: ManualClock, as_ada: Headers, as_root: Headers
) -> None:
    rows = [{"destination": f"{URL}/{number}"} for number in range(98)]
    assert (await client.post("/api/v1/links/bulk", headers=as_ada, json={"links": rows})).json()[
        "created"
    ] == 98

    responses = await asyncio.gather(
        *(client.post("/api/v1/links", headers=as_ada, json={"destination": URL}) for _ in range(6))
    )
    assert sorted(response.status_code for response in responses) == [201, 201, 429, 429, 429, 429]
    refused = next(response for response in responses if response.status_code == 429)
    assert 1 <= int(refused.headers["retry-after"]) <= 36
    assert refused.headers["ratelimit-limit"] == "100"
    more = (
        await client.post("/api/v1/links/bulk", headers=as_ada, json={"links": rows[:2]})
    ).json()
    assert [row["status"] for row in more["results"]] == [429, 429]
    assert (
        await client.post("/api/v1/links/bulk", headers=as_root, json={"links": rows * 2})
    ).json()["created"] == 196
    clock.advance(36)
    assert (
        await client.post("/api/v1/links", headers=as_ada, json={"destination": URL})
    ).status_code == 201


async def test_a_list_takes_the_same_number_of_queries_for_ten_links_and_for_two_hundred(
    client: AsyncClient, rt: Runtime, as_root: Headers
) -> None:
    async def make_some(count: int, start: int) -> None:
        rows = [
            {"destination": f"{URL}/{n}", "names": [f"n{n}"], "tags": ["many"]}
            for n in range(start, start + count)
        ]
        assert (
            await client.post("/api/v1/links/bulk", headers=as_root, json={"links": rows})
        ).json()["created"] == count

    async def queries() -> int:
        seen: list[str] = []
        stop = count_statements(rt.db.read_engine, seen.append)
        response = await client.get(
            "/api/v1/links", headers=as_root, params={"limit": 200, "tag": "many"}
        )
        stop()
        assert response.status_code == 200
        return len([one for one in seen if one.lstrip().upper().startswith("SELECT")])

    await make_some(10, 0)
    few = await queries()
    await make_some(190, 10)

    assert await queries() == few


@pytest.mark.parametrize(("path", "count"), [("/api/v1/links/{0}", 6), ("/app/links/{0}", None)])
async def test_names_tags_and_owners_of_a_link_are_read_once(
    client: AsyncClient, rt: Runtime, as_ada: Headers, path: str, count: int | None
) -> None:
    made = await _create(client, as_ada, names=["once"], tags=["alpha"])
    seen: list[str] = []
    stop = count_statements(rt.db.read_engine, seen.append)
    response = await client.get(path.format(made["id"]), headers=as_ada)
    stop()
    assert response.status_code == 200
    selects = [
        " ".join(statement.split()).replace("INNER JOIN", "JOIN")  # as MariaDB spells it
        for statement in seen
        if statement.lstrip().startswith("SELECT")
    ]
    tables = ("names", "link_tags JOIN tags", "link_owners JOIN users", "link_totals", "links LEFT")
    found = {table: sum(f"FROM {table}" in select for select in selects) for table in tables}
    assert found["names"] == found["link_totals"] == found["link_tags JOIN tags"] == 1, selects
    assert count is None or len(selects) == count, selects


async def test_a_cursor_walks_through_everything_once(
    client: AsyncClient, as_ada: Headers, as_bob: Headers
) -> None:
    made = [(await _create(client, as_ada))["id"] for _ in range(7)]
    seen: list[str] = []
    cursor = None
    while True:
        params = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/api/v1/links", headers=as_ada, params=params)).json()
        seen += [link["id"] for link in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        foreign = await client.get(
            "/api/v1/links", headers=as_bob, params={"limit": 3, "cursor": cursor}
        )
        assert (foreign.status_code, foreign.json()["code"]) == (400, "INVALID_CURSOR")

    assert seen == made[::-1]


async def test_people_of_a_link(
    client: AsyncClient, as_ada: Headers, as_bob: Headers, ada: User, bob: User
) -> None:
    link = await _create(client, as_ada)
    path = f"/api/v1/links/{link['id']}"
    assert (await client.get(path, headers=as_bob)).status_code == 404

    shared = await client.post(f"{path}/shares", headers=as_ada, json={"email": "BOB@example.com"})
    assert shared.status_code == 201
    assert (await client.get(path, headers=as_bob)).status_code == 200
    assert (await client.patch(path, headers=as_bob, json={"title": "x"})).json()[
        "code"
    ] == "NOT_OWNER"
    await _accepted(client, as_ada, as_bob, f"{path}/owners", bob)
    assert (await client.post(f"{path}/owners", headers=as_ada, json={"email": bob.email})).json()[
        "code"
    ] == "OWNER_EXISTS"
    assert (await client.patch(path, headers=as_bob, json={"title": "x"})).status_code == 200
    assert (
        await client.post(f"{path}/transfer", headers=as_bob, json={"email": bob.email})
    ).status_code == 403
    gone = await client.delete(f"{path}/owners/{ada.id}", headers=as_bob)
    assert (gone.status_code, gone.json()["code"]) == (409, "PRIMARY_OWNER_PROTECTED")
    await _accepted(client, as_ada, as_bob, f"{path}/transfer", bob)
    assert [
        one["primary"]
        for one in (await client.get(f"{path}/owners", headers=as_bob)).json()["items"]
    ] == [True, False]
    unknown = await client.post(
        f"{path}/owners", headers=as_bob, json={"email": "nobody@example.com"}
    )
    assert (unknown.status_code, unknown.json()["code"]) == (404, "USER_NOT_FOUND")


async def _accepted(
    client: AsyncClient, inviting: Headers, invited: Headers, path: str, person: User
) -> None:
    """Invite an owner, and accept the invitation."""
    offered = await client.post(path, headers=inviting, json={"email": person.email})
    assert offered.status_code == 202
    answer = await client.post(
        f"/api/v1/me/invitations/{offered.json()['invitation']['id']}/accept", headers=invited
    )
    assert answer.status_code == 200


async def test_history_can_be_read_and_gone_back_to(client: AsyncClient, as_ada: Headers) -> None:
    link = await _create(client, as_ada, title="first")
    path = f"/api/v1/links/{link['id']}"
    for title in ("second", "third"):
        await client.patch(path, headers=as_ada, json={"title": title})

    reverted = await client.post(f"{path}/history/1/revert", headers=as_ada)
    history = (await client.get(f"{path}/history", headers=as_ada)).json()["items"]

    assert (reverted.json()["title"], reverted.json()["version"]) == ("first", 4)
    assert [version["version"] for version in history] == [4, 3, 2, 1]
    assert (await client.post(f"{path}/history/9/revert", headers=as_ada)).json()[
        "code"
    ] == "VERSION_NOT_FOUND"


async def test_a_blocked_domain_stops_its_links_and_new_ones(
    client: AsyncClient, as_ada: Headers, as_root: Headers
) -> None:
    await _create(client, as_ada, names=["shop"], destination="https://sub.bad.example/")
    assert (await client.get("/shop")).status_code == 302
    assert (
        await client.post(
            "/api/v1/admin/blocked-domains", headers=as_root, json={"domain": "bad.example"}
        )
    ).status_code == 201

    assert (await client.get("/shop")).status_code == 410
    refused = await client.post(
        "/api/v1/links", headers=as_ada, json={"destination": "https://bad.example./x"}
    )
    assert (refused.status_code, refused.json()["code"]) == (422, "BLOCKED_DESTINATION")
    assert (
        await client.delete("/api/v1/admin/blocked-domains/bad.example", headers=as_root)
    ).status_code == 204
    assert (await client.get("/shop")).status_code == 302


@on_sqlite
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "destination"),
        ({"destination": URL, "total_clicks": 5}, "total_clicks"),
        ({"destination": URL, "owner_id": 1}, "owner_id"),
        ({"destination": URL, "redirect_status": 303}, "redirect_status"),
        ({"destination": URL, "title": "x" * 201}, "title"),
        ({"destination": URL, "notes": "x" * 2001}, "notes"),
        ({"destination": URL, "visibility": "secret"}, "visibility"),
        ({"destination": URL, "expires_at": "tomorrow"}, "expires_at"),
        ({"destination": URL, "expires_at": "2030-01-01T00:00:00"}, "expires_at"),
    ],
)
async def test_bad_fields_are_named(
    client: AsyncClient, as_ada: Headers, body: dict[str, Any], field: str
) -> None:
    response = await client.post("/api/v1/links", headers=as_ada, json=body)

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field


async def test_names_are_asked_for_by_strangers_but_not_without_end(
    client: AsyncClient, as_ada: Headers
) -> None:
    await _create(client, as_ada, names=["Taken"])
    for name, reason in (
        ("taken", "SLUG_TAKEN"),
        ("Admin", "SLUG_RESERVED"),
        ("-x", "INVALID_SLUG"),
        ("free", None),
    ):
        answer = (await client.get(f"/api/v1/names/{name}")).json()
        assert (answer["available"], answer["reason"]) == (reason is None, reason)
    statuses = [(await client.get("/api/v1/names/free")).status_code for _ in range(120)]
    assert statuses[-1] == 429


async def test_deletions_and_what_administrators_do_are_in_the_audit_log(
    client: AsyncClient, as_ada: Headers, as_root: Headers, ada: User, root: User
) -> None:
    link = await _create(client, as_ada)
    await client.patch(f"/api/v1/links/{link['id']}", headers=as_ada, json={"title": "mine"})
    await client.post(f"/api/v1/links/{link['id']}/disable", headers=as_root)
    for _ in range(2):  # the second changes nothing, and is no entry
        await client.delete(f"/api/v1/links/{link['id']}", headers=as_ada)

    log = (await client.get("/api/v1/admin/audit", headers=as_root)).json()["items"]

    assert [(line["action"], line["actor_id"]) for line in log if line["target"] == link["id"]] == [
        ("link.deleted", str(ada.id)),
        ("link.disabled", str(root.id)),
    ]


@on_sqlite
@pytest.mark.parametrize("sort", ["clicks", "last_click"])
async def test_public_links_cannot_be_sorted_by_clicks(
    client: AsyncClient, as_ada: Headers, as_root: Headers, sort: str
) -> None:
    """Security finding 13: their order and cursors revealed counts that only owners may see."""
    for headers in (as_ada, as_root):
        answer = await client.get(f"/api/v1/links?owner=public&sort={sort}", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "UNSUPPORTED_SORT")
    assert (
        await client.get(f"/api/v1/links?owner=shared&sort={sort}", headers=as_ada)
    ).status_code == 200


@on_sqlite
async def test_dry_runs_of_bulk_do_not_give_their_tokens_back(
    client: AsyncClient, rt: Runtime, as_ada: Headers
) -> None:
    """A dry run costs as much as creating the links, and was free in a browser session."""
    rows = [{"destination": "javascript:alert(1)"}] * 500
    answers = [
        await client.post(
            "/api/v1/links/bulk", headers=as_ada, json={"links": rows, "dry_run": True}
        )
        for _ in range(3)
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].json()["code"] == "RATE_LIMITED"
