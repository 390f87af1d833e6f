"""Reports of abuse, from the form to the administrator's decision.

The finding: no page offered to report it, and no administrator had a place to hear of it
(security review, finding 2).
"""

import re
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, Scope, User
from refract.reports.jobs import PurgeReports, purge_reports
from refract.reports.models import Report
from tests import make
from tests.client import by_key, on_sqlite
from tests.lists.clients import code, creator, published

HTML = {"Accept": "text/html"}
EVIL = "https://bücher.example/login"


async def _link(rt: Runtime, owner: User, name: str = "evil", destination: str = EVIL) -> int:
    async with rt.db.write() as session:
        return (await make.link(session, rt, owner, destination, name=name)).id


async def _report(client: AsyncClient, target: str = "evil", **given: Any) -> None:
    body = {"target": target, "reason": "phishing", **given}
    response = await client.post("/api/v1/reports", json=body)
    assert (response.status_code, response.json()) == (202, {"status": "received"})


async def _queue(
    client: AsyncClient, admin: dict[str, str], status: str = "open"
) -> list[dict[str, Any]]:
    response = await client.get("/api/v1/admin/reports", headers=admin, params={"status": status})
    assert response.status_code == 200, response.text
    items: list[dict[str, Any]] = response.json()["items"]
    return items


async def _stored(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return await session.scalar(select(func.count()).select_from(Report)) or 0


async def test_reports_are_grouped_by_target_with_owner_and_ascii_destination(
    client: AsyncClient, rt: Runtime, ada: User, admin: dict[str, str]
) -> None:
    link_id = await _link(rt, ada)
    await published(
        client, creator(), "prizes", "https://evil.example/a", "https://evil.example/b", title="Win"
    )
    await _report(client, "http://go.test/evil+", details="  It asks for my password. ")
    await _report(client, "prizes", reason="spam")

    first, second = await _queue(client, admin)

    assert (first["kind"], first["target_id"], first["name"], first["count"]) == (
        "link",
        str(link_id),
        "evil",
        1,
    )
    assert (first["reasons"], first["details"]) == ({"phishing": 1}, ["It asks for my password."])
    assert (first["destination"], first["hosts"]) == (
        "https://xn--bcher-kva.example/login",
        ["xn--bcher-kva.example"],
    )
    assert (first["owner_id"], first["owner_email"], first["state"]) == (
        str(ada.id),
        "ada@example.com",
        "active",
    )
    assert (second["kind"], second["title"], second["hosts"]) == ("list", "Win", ["evil.example"])
    assert (second["owner_id"], second["state"]) == (None, "published")


async def test_a_network_counts_once_for_a_target(
    client: AsyncClient, rt: Runtime, ada: User, admin: dict[str, str]
) -> None:
    await _link(rt, ada)
    await _report(client, reason="spam", details="First.")
    await _report(client, "/EVIL", reason="malware", details="Second.")

    (group,) = await _queue(client, admin)

    assert (group["count"], group["reasons"], group["details"]) == (1, {"malware": 1}, ["Second."])
    async with rt.db.read() as session:
        kept = (await session.scalars(select(Report.network))).one()
    assert re.fullmatch(r"[0-9a-f]{32}", kept)  # a keyed digest, no address


@on_sqlite
@pytest.mark.parametrize(
    "target", ["nothing-here", "https://other.example/nothing", "/", "ü", "a/b/c"]
)
async def test_the_answer_does_not_tell_what_exists(
    client: AsyncClient, rt: Runtime, target: str
) -> None:
    await _report(client, target)

    assert await _stored(rt) == 0


@on_sqlite
@pytest.mark.parametrize(
    "body",
    [
        {"target": "evil"},
        {"target": "evil", "reason": "boring"},
        {"target": "", "reason": "spam"},
        {"target": "evil", "reason": "spam", "details": "x" * 1001},
        {"target": "evil", "reason": "spam", "email": "me@example.com"},
    ],
)
async def test_a_report_that_does_not_fit_is_refused(
    client: AsyncClient, body: dict[str, str]
) -> None:
    assert (await client.post("/api/v1/reports", json=body)).status_code == 422


@on_sqlite
async def test_reports_are_limited_by_network(client: AsyncClient, rt: Runtime, ada: User) -> None:
    rt.settings = rt.settings.model_copy(update={"reports_per_hour": 2})
    await _link(rt, ada)
    for _ in range(2):
        await _report(client, "no-such-link")

    refused = await client.post("/api/v1/reports", json={"target": "evil", "reason": "spam"})

    assert code(refused) == (429, "RATE_LIMITED")
    assert await _stored(rt) == 0


@on_sqlite
async def test_the_form_works_without_script_and_needs_proof_of_origin(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    await _link(rt, ada)
    page = await client.get("/app/report?name=evil%22%3E", headers=HTML)
    shown = re.search(r'name="csrf" value="([^"]+)"', page.text)
    visit = re.search(r"refract_visit=([^;]+)", page.headers["set-cookie"])
    assert shown
    assert visit
    form = {"target": "evil", "reason": "phishing", "details": "Look."}
    cookie = {"Cookie": f"refract_visit={visit[1]}"} | HTML

    forged = await client.post("/app/report", headers=HTML, data=form)
    incomplete = await client.post(
        "/app/report", headers=cookie, data={"csrf": shown[1], "target": "evil"}
    )
    sent = await client.post("/app/report", headers=cookie, data=form | {"csrf": shown[1]})
    thanks = await client.get(sent.headers["location"], headers=HTML)

    assert "evil&#34;&gt;" in page.text
    assert forged.status_code == 403
    assert (incomplete.status_code, "Choose a reason." in incomplete.text) == (422, True)
    assert (sent.status_code, thanks.status_code) == (303, 200)
    assert "Your report was received" in thanks.text
    assert await _stored(rt) == 1


@on_sqlite
async def test_lists_and_previews_offer_to_report(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    await _link(rt, ada)
    await published(client, creator(), "prizes", "https://evil.example/a")

    for path in ("prizes", "evil+"):
        page = await client.get(f"/{path}", headers=HTML)
        assert f'href="/app/report?name={path.rstrip("+")}"' in page.text, path


async def test_dismissing_closes_every_report_of_the_target_and_can_be_undone(
    client: AsyncClient, rt: Runtime, ada: User, admin: dict[str, str]
) -> None:
    await _link(rt, ada)
    await _report(client)
    (group,) = await _queue(client, admin)
    path = f"/api/v1/admin/reports/{group['id']}"

    done = await client.post(f"{path}/dismiss", headers=admin)

    assert (done.status_code, done.json()["action"]) == (200, "dismiss")
    assert await _queue(client, admin) == []
    (closed,) = await _queue(client, admin, "closed")
    assert closed["outcome"] == "dismiss"
    await client.post(f"{path}/reopen", headers=admin)
    assert [report["id"] for report in await _queue(client, admin)] == [group["id"]]


async def test_every_action_does_what_it_says_and_is_audited(
    client: AsyncClient, rt: Runtime, ada: User, bob: User, root: User, admin: dict[str, str]
) -> None:
    await _link(rt, ada)
    await _link(rt, bob, "spam", "https://spam.example/")
    list_id = (
        await published(
            client, creator(), "prizes", "https://evil.example/a", "https://other.example/"
        )
    )["id"]
    for name in ("evil", "spam", "prizes"):
        await _report(client, name)
    ids = {group["name"]: group["id"] for group in await _queue(client, admin)}

    async def act(name: str, action: str, **body: str) -> Any:
        return await client.post(
            f"/api/v1/admin/reports/{ids[name]}/{action}", headers=admin, json=body or None
        )

    assert code(await act("prizes", "disable-link")) == (409, "ACTION_NOT_APPLICABLE")
    assert code(await act("prizes", "suspend-owner")) == (409, "ACTION_NOT_APPLICABLE")
    assert code(await act("prizes", "block-domain")) == (409, "ACTION_NOT_APPLICABLE")
    assert code(await act("evil", "unpublish-list")) == (409, "ACTION_NOT_APPLICABLE")
    assert len(await _queue(client, admin)) == 3
    for name, action, body in [
        ("evil", "disable-link", {}),
        ("evil", "suspend-owner", {}),
        ("spam", "block-domain", {}),
        ("prizes", "block-domain", {"domain": "other.example"}),
        ("prizes", "unpublish-list", {}),
    ]:
        assert (await act(name, action, **body)).status_code == 200, (name, action)

    assert await _queue(client, admin) == []
    assert (await client.get("/evil")).status_code == 410
    assert (await client.get("/spam")).status_code == 410
    assert (await client.get("/prizes", headers=HTML)).status_code == 404
    async with rt.db.read() as session:
        assert (await session.get_one(User, ada.id)).status == "suspended"
        lines = {
            (line.action, line.target)
            for line in await session.scalars(
                select(AuditEntry).where(AuditEntry.actor_id == root.id)
            )
        }
    actions = {action for action, _ in lines}
    expected = {
        "report.disable-link",
        "report.suspend-owner",
        "report.block-domain",
        "report.unpublish-list",
    }
    assert (
        expected | {"link.disabled", "status.changed", "domain.blocked", "list.deleted"} <= actions
    )
    assert ("report.unpublish-list", f"list {list_id}") in lines


@on_sqlite
async def test_the_screen_shows_the_queue_and_offers_undo(
    client: AsyncClient, rt: Runtime, ada: User, browser: dict[str, str]
) -> None:
    await _link(rt, ada)
    assert "No open reports" in (await client.get("/app/admin/reports", headers=browser)).text
    await _report(client, details="<b>Look</b>")
    page = await client.get("/app/admin/reports", headers=browser)
    action = re.search(r'action="(/app/admin/reports/\d+/disable-link)"', page.text)
    assert action
    assert "&lt;b&gt;Look&lt;/b&gt;" in page.text
    assert "https://xn--bcher-kva.example/login" in page.text
    assert (
        '<span class="unseen">, 1 open report</span>'
        in (await client.get("/app/admin/reports/waiting", headers=browser)).text
    )

    done = await client.post(action[1], headers=browser)

    assert (done.status_code, done.headers["location"]) == (303, "/app/admin/reports")
    said = {"Cookie": f"{browser['Cookie']}; {done.headers['set-cookie'].split(';')[0]}"}
    after = await client.get("/app/admin/reports?status=closed", headers=browser | said)
    assert "Disabled /evil" in after.text
    assert "Link disabled" in after.text
    assert re.search(r'action="/app/links/\d+/enable"', after.text)


@on_sqlite
async def test_the_queue_comes_in_pages_with_the_oldest_first(
    client: AsyncClient, rt: Runtime, ada: User, admin: dict[str, str]
) -> None:
    for number in range(3):
        await _link(rt, ada, f"evil-{number}", f"https://evil.example/{number}")
        await _report(client, f"evil-{number}")
    first = (await client.get("/api/v1/admin/reports?limit=2", headers=admin)).json()
    second = (
        await client.get(
            f"/api/v1/admin/reports?limit=2&cursor={first['next_cursor']}", headers=admin
        )
    ).json()

    names = [report["name"] for report in first["items"] + second["items"]]
    assert (names, second["next_cursor"], second["open"]) == (
        ["evil-0", "evil-1", "evil-2"],
        None,
        3,
    )


async def test_closed_reports_are_forgotten_after_a_while(
    client: AsyncClient, rt: Runtime, clock: ManualClock, ada: User, admin: dict[str, str]
) -> None:
    for name in ("evil", "spam"):
        await _link(rt, ada, name)
        await _report(client, name)
    first, _ = await _queue(client, admin)
    await client.post(f"/api/v1/admin/reports/{first['id']}/dismiss", headers=admin)

    clock.advance(90 * 86_400)
    await purge_reports(rt, PurgeReports())
    assert await _stored(rt) == 2
    clock.advance(1)
    await purge_reports(rt, PurgeReports())

    assert await _stored(rt) == 1  # the open one stays


async def test_reports_of_a_person_leave_with_their_account(
    client: AsyncClient, rt: Runtime, ada: User, bob: User
) -> None:
    await _link(rt, ada)
    await _link(rt, bob, "other")
    async with rt.db.write() as session:
        mine = by_key(await make.key(session, rt, ada, Scope.READ, Scope.WRITE, Scope.ACCOUNT))
    await published(client, mine, "prizes", "https://evil.example/a")
    for name in ("evil", "other", "prizes"):
        await _report(client, name)

    assert (await client.delete("/api/v1/me", headers=mine)).status_code == 204

    async with rt.db.read() as session:
        assert list(await session.scalars(select(Report.name))) == ["other"]


@on_sqlite
async def test_open_reports_are_a_metric(client: AsyncClient, rt: Runtime, ada: User) -> None:
    await _link(rt, ada)
    await _report(client)

    assert "refract_reports_open 1.0" in (await client.get("/metrics")).text
