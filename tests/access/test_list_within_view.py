"""Whatever a list or a search tells a user, they may also view by id; strangers are told nothing.

Security finding 7: lists had their own idea of who may see a deleted link. Now both use
`links.access.visible_to`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.enums import LinkState, Visibility
from refract.links.queries import LinkSort, OwnerFilter
from tests import make
from tests.client import by_cookie, client_of
from tests.machine import Ground, size

PEOPLE = ("ada", "bob", "cleo")
TEAMS = {"crew": ("ada", "bob"), "choir": ("ada", "bob", "cleo")}
"""The members of each team."""
STATES = (None, *LinkState)


@dataclass(frozen=True)
class Sketch:
    """A link to be made: its owner first, then co-owners; `shared` are recipients.

    With a team, the team owns it and not its creator.
    """

    owners: Sequence[str]
    team: str | None
    shared: Sequence[str]
    visibility: Visibility
    state: LinkState

    @property
    def given(self) -> dict[str, Any]:
        """The team and the visibility, as far as the creator may choose them."""
        team = self.team if self.owners[0] in TEAMS.get(self.team or "", ()) else None
        without = Visibility.SECURE if self.visibility == Visibility.TEAM else self.visibility
        return {
            "team": team,
            "visibility": self.visibility if team else without,
            "password": "sesame" if self.visibility == Visibility.PASSWORD else None,
        }

    @property
    def all_owners(self) -> set[str]:
        return {*self.owners, *TEAMS.get(self.given["team"] or "", ())}


SKETCHES = st.builds(
    Sketch,
    st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=2, unique=True),
    st.sampled_from((None, *TEAMS)),
    st.lists(st.sampled_from(PEOPLE), max_size=2, unique=True),
    st.sampled_from(Visibility),
    st.sampled_from(LinkState),
)


async def _draw(rt: Runtime, people: dict[str, User], number: int, sketch: Sketch) -> int:
    owner = people[sketch.owners[0]]
    who, now = make.who(owner), rt.clock.now()
    expires = now + timedelta(seconds=1) if sketch.state == LinkState.EXPIRED else None
    async with rt.db.write() as session:
        given = {
            "name": f"plans-{number}",
            "title": "Plans",
            "tags": ["plans"],
            "expires_at": expires,
            **sketch.given,
        }
        link = await make.link(session, rt, owner, f"https://example.com/{number}", **given)
        for name in sketch.owners[1:]:
            await service.add_owner(session, who, link.id, people[name].email, now)
        for name in sketch.shared:
            if name not in sketch.all_owners:
                await service.share_link(session, who, link.id, people[name].email, now)
        if sketch.state == LinkState.DISABLED:
            await service.disable_link(session, who, link.id, now)
        elif sketch.state == LinkState.DELETED:
            await service.delete_link(session, who, link.id, now)
        return link.id


async def _listed(client: AsyncClient, headers: dict[str, str], admin: bool) -> set[str]:
    """Return the ids that any list or search tells."""
    found: set[str] = set()
    for owner, state, sort in product(OwnerFilter, STATES, (LinkSort.CREATED, LinkSort.CLICKS)):
        if (owner == OwnerFilter.PUBLIC and sort == LinkSort.CLICKS) or (
            owner == OwnerFilter.ALL and not admin
        ):
            continue
        query = {
            "owner": owner,
            "sort": sort,
            "limit": 2,
            "q": "plans",
            **({"status": state} if state else {}),
        }
        while True:
            page = (await client.get("/api/v1/links", headers=headers, params=query)).json()
            found |= {one["id"] for one in page["items"]}
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
    hits = await client.get(
        "/api/v1/search", headers=headers, params={"q": "plans", "kinds": "links", "limit": 50}
    )
    return found | {one["id"] for one in hits.json()["items"]}


async def _named(client: AsyncClient, headers: dict[str, str]) -> set[str]:
    """Return the names that suggestions tell."""
    suggested = (await client.get("/app/suggest?q=plans", headers=headers)).json()[1]
    near = (await client.get("/plans-", headers=headers)).json()["suggestions"]
    return {*suggested, *near}


async def _check(rt: Runtime, sketches: Sequence[Sketch]) -> None:
    async with rt.db.write() as session:
        people = {name: await make.person(session, rt, name) for name in PEOPLE} | {
            "root": await make.admin(session, rt)
        }
        for team, (manager, *members) in TEAMS.items():
            everybody = [people[name] for name in (manager, *members)]
            await make.team(session, rt, *everybody, name=team)
        headers = {
            name: by_cookie(rt, await make.cookie(session, rt, person))
            for name, person in people.items()
        }
    ids = [await _draw(rt, people, number, sketch) for number, sketch in enumerate(sketches)]
    assert isinstance(rt.clock, ManualClock)
    rt.clock.advance(5)
    app = WebNode(rt)
    try:
        async with client_of(app) as client:
            assert await _named(client, {}) == set()
            for name, cookie in headers.items():
                viewed = {
                    str(one)
                    for one in ids
                    if (await client.get(f"/api/v1/links/{one}", headers=cookie)).status_code == 200
                }
                names = {f"plans-{number}" for number, one in enumerate(ids) if str(one) in viewed}
                told = await _listed(client, cookie, name == "root")
                assert told <= viewed, name
                assert await _named(client, cookie) <= names, name
                for sketch, one in zip(sketches, ids, strict=True):
                    deleted, mine = (
                        sketch.state == LinkState.DELETED,
                        name in sketch.all_owners or name == "root",
                    )
                    open_to = name in sketch.shared or sketch.visibility == Visibility.PUBLIC
                    assert (str(one) in viewed) == (mine or (open_to and not deleted)), (
                        name,
                        sketch,
                    )
                    assert (str(one) in told) == (str(one) in viewed), (name, sketch)
    finally:
        if app.engine is not None:
            app.engine.spool.close()


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_what_is_listed_can_be_viewed(database: str, tmp_path: Path) -> None:
    ground = Ground(database, tmp_path / "data")
    (tmp_path / "data").mkdir()

    @settings(
        max_examples=size("EXAMPLES", 5),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(st.lists(SKETCHES, min_size=1, max_size=6))
    def check(sketches: list[Sketch]) -> None:
        ground.run(_check(ground.fresh(), sketches))

    try:
        check()
    finally:
        ground.close()
