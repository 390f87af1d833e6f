"""Administration of people: find, suspend, promote, delete."""

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.clicks.jobs import VerifyClicks, verify_clicks
from refract.core.clock import format_utc
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from refract.jobs.queries import count_open_jobs
from refract.links.enums import LinkState
from refract.links.models import LinkOwner, LinkTotals
from tests import make
from tests.client import by_cookie, by_key, on_sqlite


@pytest.fixture
async def root(rt: Runtime) -> dict[str, str]:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, await make.admin(session, rt), *make.ALL))


async def _person(rt: Runtime, name: str, **given: str) -> tuple[User, dict[str, str]]:
    async with rt.db.write() as session:
        user = await make.person(session, rt, name, **given)
        return user, by_key(await make.key(session, rt, user))


async def test_people_are_found_by_a_part_of_their_address_newest_first(
    rt: Runtime, client: AsyncClient, root: dict[str, str]
) -> None:
    for number in range(5):
        await _person(rt, f"ada{number}", email=f"Ada{number}@Example.com")
    await _person(rt, "bob_x")

    async def found(**query: str | int) -> list[str]:
        answer = await client.get("/api/v1/admin/users", headers=root, params=query)
        assert answer.status_code == 200
        return [person["email"] for person in answer.json()["items"]]

    assert await found(q="ADA") == [f"Ada{number}@Example.com" for number in (4, 3, 2, 1, 0)]
    assert await found(q="b_x@") == ["bob_x@example.com"]
    assert await found(q="b%x") == []
    assert await found(role="admin") == ["root@example.com"]
    first = (
        await client.get("/api/v1/admin/users", headers=root, params={"q": "ada", "limit": 3})
    ).json()
    second = await client.get(
        "/api/v1/admin/users",
        headers=root,
        params={"q": "ada", "limit": 3, "cursor": first["next_cursor"]},
    )
    assert [person["email"] for person in second.json()["items"]] == [
        "Ada1@Example.com",
        "Ada0@Example.com",
    ]
    stolen = await client.get(
        "/api/v1/admin/users", headers=root, params={"q": "bob", "cursor": first["next_cursor"]}
    )
    assert stolen.status_code == 400


async def test_who_is_suspended_is_refused_at_once_by_every_way_in(
    rt: Runtime, client: AsyncClient, root: dict[str, str]
) -> None:
    user, key = await _person(rt, "ada")
    async with rt.db.write() as session:
        cookie = by_cookie(rt, await make.cookie(session, rt, user))

    for status, seen in (("suspended", 401), ("active", 200)):
        changed = await client.patch(
            f"/api/v1/admin/users/{user.id}", headers=root, json={"status": status}
        )
        assert (changed.status_code, changed.json()["status"]) == (200, status)
        assert [
            (await client.get("/api/v1/me", headers=headers)).status_code
            for headers in (key, cookie)
        ] == [seen, seen]
    async with rt.db.read() as session:
        lines = [
            (entry.action, entry.target, entry.detail)
            for entry in await session.scalars(select(AuditEntry).order_by(AuditEntry.id))
        ]
    assert lines == [
        ("status.changed", str(user.id), "suspended"),
        ("links.held", str(user.id), None),
        ("status.changed", str(user.id), "active"),
        ("links.released", str(user.id), None),
    ]


@on_sqlite
@pytest.mark.parametrize("change", [{"status": "suspended"}, {"role": "user"}])
async def test_the_last_administrator_stays_one(
    rt: Runtime, client: AsyncClient, root: dict[str, str], change: dict[str, str]
) -> None:
    me = (await client.get("/api/v1/me", headers=root)).json()["id"]
    refused = await client.patch(f"/api/v1/admin/users/{me}", headers=root, json=change)

    assert (refused.status_code, refused.json()["code"]) == (409, "LAST_ADMIN")


@on_sqlite
@pytest.mark.parametrize(
    "body", [{"status": "deleted"}, {"role": "king"}, {"email": "x@example.com"}]
)
async def test_what_an_operator_cannot_change(
    rt: Runtime, client: AsyncClient, root: dict[str, str], body: dict[str, str]
) -> None:
    user, _ = await _person(rt, "ada")

    assert (
        await client.patch(f"/api/v1/admin/users/{user.id}", headers=root, json=body)
    ).status_code == 422


async def test_links_of_somebody_who_is_deleted_go_to_an_heir_or_go(
    rt: Runtime, client: AsyncClient, root: dict[str, str]
) -> None:
    (ada, _), (bob, _), (cleo, _) = [await _person(rt, name) for name in ("ada", "bob", "cleo")]
    async with rt.db.write() as session:
        kept = await make.link(session, rt, ada, name="kept", title="Kept")
        lost = await make.link(session, rt, bob, name="lost")

    async def delete(user: User, **query: str) -> int:
        return (
            await client.delete(f"/api/v1/admin/users/{user.id}", headers=root, params=query)
        ).status_code

    assert await delete(ada) == 422
    for heir in ({}, {"heir": str(ada.id)}, {"heir": "1"}):
        assert await delete(ada, links="reassign", **heir) == 422
    assert await delete(ada, links="reassign", heir=str(cleo.id)) == 204
    assert await delete(bob, links="delete") == 204
    assert await delete(bob, links="delete") == 404
    async with rt.db.read() as reading:
        owner = await reading.scalar(
            select(LinkOwner.user_id).where(LinkOwner.primary_link_id == kept.id)
        )
    seen = await client.get("/api/v1/admin/links", headers=root)
    assert owner == cleo.id
    assert [(link["names"], link["title"]) for link in seen.json()["items"]] == [(["kept"], "Kept")]
    gone = (
        await client.get("/api/v1/admin/links", headers=root, params={"status": "deleted"})
    ).json()["items"]
    assert [(link["id"], link["status"], link["destination"]) for link in gone] == [
        (str(lost.id), LinkState.DELETED, "https://erased.invalid/")
    ]


@on_sqlite
async def test_figures_and_the_queue_are_told(client: AsyncClient, root: dict[str, str]) -> None:
    figures = (await client.get("/api/v1/admin/figures", headers=root)).json()
    jobs = (await client.get("/api/v1/admin/jobs", headers=root)).json()

    assert figures == {
        "accepted": 0,
        "stored": 0,
        "pending": 0,
        "not_kept": 0,
        "events": None,
        "totals": None,
        "drift": [],
        "verified_at": None,
        "verifying": False,
    }
    assert jobs == {"items": [], "next_cursor": None, "depth": [], "oldest_due_seconds": 0.0}


@on_sqlite
async def test_a_verification_runs_as_a_job_and_its_result_is_kept(
    rt: Runtime, client: AsyncClient, root: dict[str, str]
) -> None:
    async with rt.db.write() as session:
        session.add(LinkTotals(link_id=7, total_clicks=3, bot_clicks=0, last_clicked_at=None))

    started = await client.post("/api/v1/admin/figures/verify", headers=root)
    assert (started.status_code, started.json()["verifying"]) == (202, True)
    await client.post("/api/v1/admin/figures/verify", headers=root)
    async with rt.db.read() as session:
        assert await count_open_jobs(session) == {("PENDING", "analytics.verify"): 1}
    assert (await client.get("/api/v1/admin/figures", headers=root)).json()["drift"] == []

    await verify_clicks(rt, VerifyClicks())
    figures = (await client.get("/api/v1/admin/figures", headers=root)).json()
    assert figures["verified_at"] == format_utc(rt.clock.now())
    assert (figures["events"], figures["totals"], len(figures["drift"])) == (0, 3, 2)


@on_sqlite
async def test_the_overview_counts_no_events(
    rt: Runtime, client: AsyncClient, root: dict[str, str]
) -> None:
    asked: list[str] = []
    stop = count_statements(rt.db.read_engine, asked.append)
    for path in ("/api/v1/admin/figures", "/app/admin"):
        assert (await client.get(path, headers=root)).status_code == 200
    stop()
    counted = ("click_events", "click_rollups", "link_totals")
    assert [statement for statement in asked if any(name in statement for name in counted)] == []


@on_sqlite
@pytest.mark.parametrize(
    "path",
    [
        "/app/admin/people",
        "/app/admin/people?q=ada",
        "/app/admin/people?q=nobody",
        "/app/admin/audit",
    ],
)
async def test_the_screens_show(
    rt: Runtime, client: AsyncClient, root: dict[str, str], path: str
) -> None:
    await _person(rt, "ada")

    assert (await client.get(path, headers=root | {"Accept": "text/html"})).status_code == 200


@on_sqlite
async def test_a_refusal_is_told_on_the_screen(
    rt: Runtime, client: AsyncClient, root: dict[str, str]
) -> None:
    me = (await client.get("/api/v1/me", headers=root)).json()["id"]
    page = await client.post(
        f"/app/admin/people/{me}/demote", headers=root | {"Accept": "text/html"}
    )
    heirless = await client.post(
        f"/app/admin/people/{me}/delete",
        headers=root | {"Accept": "text/html"},
        data={"links": "reassign", "heir": "no@example.com"},
    )

    assert (page.status_code, "last active administrator" in page.text) == (409, True)
    assert (heirless.status_code, "no active user" in heirless.text) == (404, True)


@on_sqlite
async def test_a_change_is_confirmed_with_its_undo(rt: Runtime, client: AsyncClient) -> None:
    ada, _ = await _person(rt, "ada", nickname="Ada")
    async with rt.db.write() as session:
        admin = await make.admin(session, rt, "rita")
        browser = by_cookie(rt, await make.cookie(session, rt, admin)) | {"Accept": "text/html"}

    done = await client.post(f"/app/admin/people/{ada.id}/suspend", headers=browser)

    cookies = {"Cookie": f"{browser['Cookie']}; {done.headers['set-cookie'].split(';')[0]}"}
    after = (await client.get("/app/admin/people", headers=browser | cookies)).text
    assert "Suspended Ada" in after
    assert f'action="/app/admin/people/{ada.id}/restore"' in after


@on_sqlite
async def test_administrators_are_not_offered_to_lock_themselves_out(
    rt: Runtime, client: AsyncClient
) -> None:
    """Finding: Suspend, Demote and Delete on one's own row were refused only afterwards."""
    ada, _ = await _person(rt, "ada")
    async with rt.db.write() as session:
        admin = await make.admin(session, rt, "rita")
        browser = by_cookie(rt, await make.cookie(session, rt, admin)) | {"Accept": "text/html"}

    page = (await client.get("/app/admin/people", headers=browser)).text

    for action in ("suspend", "delete"):
        assert f'action="/app/admin/people/{ada.id}/{action}"' in page
        assert f'action="/app/admin/people/{admin.id}/{action}"' not in page
    assert f'action="/app/admin/people/{ada.id}/promote"' in page
    assert f'action="/app/admin/people/{admin.id}/demote"' not in page
