"""What an administrator does to other people's objects leaves a line in the audit log, whatever
door it came through.

The finding: 12 of 14 such changes left none, among them taking over a link and pointing it
elsewhere. Lines were written at each edge, and most edges had forgotten.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import select

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from refract.links.access import LinkCaller as Standing
from refract.links.rules.checks import CheckedRules
from refract.links.rules.document import LinkRule
from refract.links.schemas import LinkPatch
from refract.links.service import disable_link, edit_link, replace_rules
from refract.lists.queries import list_entries
from tests import make
from tests.access.identities import Who, World, populate
from tests.access.matrix import ADMIN_WRITE, FINE, ROWS
from tests.access.objects import _link, _list, a_blocked_domain, parameters_of, real_path
from tests.access.test_matrix import settings  # noqa: F401 - the fixture
from tests.client import client_of, on_sqlite

pytestmark = on_sqlite

EXPORTS = [
    "GET /api/v1/links/{link_id}/stats/export",
    "GET /api/v1/me/export",
    "GET /api/v1/library/export",
]


def _changes_foreign_objects(route: str) -> bool:
    """Whether an administrator reaches somebody else's object by this route.

    One that the path names, or everybody's.
    """
    row, method = ROWS[route], route.split(" ", maxsplit=1)[0]
    if (
        method in ("GET", "HEAD")
        or row.profile.outcomes[Who.ADMIN] is not FINE
        or route.startswith("POST /auth/")
    ):
        return False
    return bool(parameters_of(route)) or row.profile == ADMIN_WRITE


async def _two_entries(world: World, route: str) -> tuple[str, list[str]]:
    list_id = await _list(world, "https://example.com/1", "https://example.com/2")
    async with world.rt.db.read() as session:
        ids = [str(row.entry.id) for row in await list_entries(session, int(list_id))]
    return route.split(" ")[1].replace("{list_id}", list_id), ids


async def _reordered(world: World, route: str) -> tuple[str, dict[str, Any]]:
    path, ids = await _two_entries(world, route)
    asked = (
        {"json": {"entry_ids": ids[::-1]}}
        if "/api/" in path
        else {"data": {"order": ",".join(ids[::-1])}}
    )
    return path, asked


async def _moved(world: World, route: str) -> tuple[str, dict[str, Any]]:
    path, ids = await _two_entries(world, route)
    return path.replace("{entry_id}", ids[0]).replace("{step}", "down"), {}


async def _edited_before(world: World, route: str) -> tuple[str, dict[str, Any]]:
    link_id = await _link(world)
    async with world.rt.db.write() as session:
        patch = LinkPatch(title="Later", expires_at=world.rt.clock.now().replace(year=2100))
        await edit_link(session, make.space(world.rt), Standing(world.owner.id), link_id, patch)
    return route.split(" ")[1].replace("{link_id}", str(link_id)).replace("{version}", "1"), {}


async def _two_rules(world: World, route: str) -> tuple[str, dict[str, Any]]:
    link_id = await _link(world)
    rules = [LinkRule(0, f"https://example.com/{share}", {"share": share}) for share in (1, 2)]
    async with world.rt.db.write() as session:
        given = CheckedRules(rules, unchecked=False)
        space, caller = make.space(world.rt), Standing(world.owner.id)
        await replace_rules(session, space, caller, link_id, given)
    path = route.split(" ")[1].replace("{link_id}", str(link_id)).replace("{number}", "1")
    return path, {"data": {"by": "1"}}


Case = Callable[[World, str], Awaitable[tuple[str, dict[str, Any]]]]
REAL_CHANGES: dict[str, Case] = {
    "PUT /api/v1/lists/{list_id}/order": _reordered,
    "POST /app/lists/{list_id}/order": _reordered,
    "POST /app/lists/{list_id}/entries/{entry_id}/{step}": _moved,
    "POST /api/v1/links/{link_id}/renew": _edited_before,
    "POST /api/v1/links/{link_id}/history/{version}/revert": _edited_before,
    "POST /app/links/{link_id}/history/{version}/revert": _edited_before,
    "POST /app/links/{link_id}/rules/{number}/move": _two_rules,
    "POST /app/links/{link_id}/rules/{number}/remove": _two_rules,
}
"""Routes whose row in the matrix succeeds without changing anything: here they change something."""


@pytest.mark.parametrize(
    "route", [route for route in ROWS if _changes_foreign_objects(route)] + EXPORTS
)
async def test_an_administrators_change_leaves_a_line(
    rt: Runtime, app: WebNode, route: str
) -> None:
    world, row = await populate(rt), ROWS[route]
    method, path = route.split(" ")
    asked: dict[str, Any] = {
        "json": row.body,
        "data": row.fields,
        "files": row.files,
        "params": row.query,
    }
    if route in REAL_CHANGES:
        path, others = await REAL_CHANGES[route](world, route)
        asked |= others
    else:
        path = await real_path(world, path)
    async with client_of(app) as client:
        before = await _lines(rt, world.admin)
        response = await client.request(method, path, headers=world.headers[Who.ADMIN], **asked)
    assert response.status_code < 400, response.text
    assert len(await _lines(rt, world.admin)) > len(before), (
        f"{route} leaves no line in the audit log"
    )


async def test_bulk_steps_on_other_peoples_links_leave_lines(rt: Runtime, app: WebNode) -> None:
    world = await populate(rt)
    first, second = await _link(world), await _link(world)
    headers = world.headers[Who.ADMIN]
    async with client_of(app) as client:
        for act in ("disable", "enable", "tag", "delete"):
            form = {"act": act, "ids": [str(first), str(second)], "tag": "later"}
            await client.post("/app/links/bulk", headers=headers, data=form)
        await client.post("/app/links/undo", headers=headers, params={"ids": f"{first},{second}"})
    told = [(line.action, line.target) for line in await _lines(rt, world.admin)]
    assert sorted(told) == sorted(
        (f"link.{action}", str(link_id))
        for action in ("disabled", "enabled", "edited", "deleted", "undone")
        for link_id in (first, second)
    )


async def test_an_address_added_to_a_foreign_list_leaves_a_line(rt: Runtime, app: WebNode) -> None:
    world = await populate(rt)
    list_id = await _list(world)
    async with client_of(app) as client:
        form = {"url": "https://example.com/added", "to": list_id}
        assert (
            await client.post("/app/lists/add", headers=world.headers[Who.ADMIN], data=form)
        ).status_code == 303
    assert [(line.action, line.target) for line in await _lines(rt, world.admin)] == [
        ("list.entries_added", list_id)
    ]


async def test_what_owners_do_to_their_own_is_their_links_history_alone(
    rt: Runtime, app: WebNode, client: AsyncClient
) -> None:
    """Except for what ends or moves a link."""
    world = await populate(rt)
    headers, link_id = world.headers[Who.OWNER], await _link(world)
    async with rt.db.write() as session:
        await disable_link(session, Standing(world.owner.id), link_id, rt.clock.now())
    assert (
        await client.patch(f"/api/v1/links/{link_id}", headers=headers, json={"title": "Mine"})
    ).status_code == 200
    await client.delete(f"/api/v1/links/{link_id}/owners/{world.co_owner.id}", headers=headers)
    await client.delete(f"/api/v1/links/{link_id}", headers=headers)
    told = [(line.action, line.detail) for line in await _lines(rt, world.owner)][-2:]
    assert told == [
        ("link.owner_removed", f"owners removed {world.co_owner.id}"),
        ("link.deleted", "status"),
    ]


async def test_a_refused_key_is_told_with_its_beginning_and_its_network(
    rt: Runtime, app: WebNode, client: AsyncClient
) -> None:
    """The finding: a number per second, with which there is nothing to investigate."""
    world = await populate(rt)
    async with rt.db.write() as session:
        revoked = await make.revoked_key(session, rt, world.owner)
    await client.get("/api/v1/me", headers={"X-API-Key": revoked})
    await client.get("/api/v1/me", headers={"X-API-Key": "something of another system"})
    await app.api.state.key_usage.flush()
    await client.get("/api/v1/me", headers={"X-API-Key": "something of another system"})
    await app.api.state.key_usage.flush()
    async with rt.db.read() as session:
        lines = list(
            await session.scalars(
                select(AuditEntry)
                .where(AuditEntry.action == "credentials.refused")
                .order_by(AuditEntry.id)
            )
        )
    assert [(line.target, line.detail) for line in lines] == [
        (
            revoked[:16],
            f"2 attempts: {revoked[:16]} from 127.0.0.0/24: 1; no key from 127.0.0.0/24: 1",
        ),
        (None, "1 attempt: no key from 127.0.0.0/24: 1"),
    ]


async def test_blocked_domains_name_who_did_it(
    rt: Runtime, app: WebNode, client: AsyncClient
) -> None:
    world = await populate(rt)
    domain = await a_blocked_domain(world)
    await client.delete(f"/api/v1/admin/blocked-domains/{domain}", headers=world.headers[Who.ADMIN])
    assert [(line.action, line.target) for line in await _lines(rt, world.admin)] == [
        ("domain.unblocked", domain)
    ]


async def _lines(rt: Runtime, actor: User) -> list[AuditEntry]:
    async with rt.db.read() as session:
        found = select(AuditEntry).where(AuditEntry.actor_id == actor.id).order_by(AuditEntry.id)
        return list(await session.scalars(found))


async def test_a_sign_in_link_and_a_changed_profile_leave_lines(
    rt: Runtime, app: WebNode, client: AsyncClient
) -> None:
    world = await populate(rt)
    async with rt.db.write() as session:
        await make.signin_link(session, rt, world.other)
    changed = await client.patch(
        "/api/v1/me", headers=world.headers[Who.OTHER], json={"nickname": "Ottokar"}
    )
    assert changed.status_code == 200
    unchanged = await client.patch(
        "/api/v1/me", headers=world.headers[Who.OTHER], json={"nickname": "Ottokar"}
    )
    assert unchanged.status_code == 200
    async with rt.db.read() as session:
        lines = await session.scalars(
            select(AuditEntry)
            .where(AuditEntry.target == str(world.other.id))
            .order_by(AuditEntry.id)
        )
        told = [(line.action, line.actor_id, line.detail) for line in lines]
    assert told == [
        ("signin_link.made", None, None),
        ("profile.changed", world.other.id, "nickname"),
    ]
