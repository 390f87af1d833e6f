"""New links that a team owns: by API, in bulk, by form, on the command line and from files."""

import io

from httpx import AsyncClient
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import queries
from refract.links.export import LinkExportFormat, LinkExportWriter, build_record
from refract.links.imports import LinkImporter, LinkImportOutcome, open_link_file
from refract.links.models import Link, LinkOwner, LinkTag, LinkTeam
from tests import make
from tests.client import by_cookie, by_key, on_sqlite

NEW = {"destination": "https://example.com/plan", "team": "crew", "tags": ["Plans"]}


async def _populate(rt: Runtime, ada: User, bob: User) -> tuple[dict[str, str], dict[str, str]]:
    """Make a team of Ada and Bob; return their keys as headers."""
    async with rt.db.write() as session:
        await make.team(session, rt, ada, bob)
        return by_key(await make.key(session, rt, ada)), by_key(await make.key(session, rt, bob))


async def _owners(rt: Runtime, link_id: int) -> dict[int, tuple[int | None, bool | None]]:
    async with rt.db.read() as session:
        rows = await session.scalars(select(LinkOwner).where(LinkOwner.link_id == link_id))
        return {row.user_id: (row.primary_link_id, row.through_team) for row in rows}


async def test_a_team_owns_a_new_link_and_every_member_finds_it(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    as_ada, as_bob = await _populate(rt, ada, bob)

    made = (await client.post("/api/v1/links", headers=as_ada, json=NEW)).json()
    assert made["owners"] == []
    assert [(team["slug"], team["primary"]) for team in made["teams"]] == [("crew", True)]
    assert await _owners(rt, int(made["id"])) == dict.fromkeys((ada.id, bob.id), (None, True))
    async with rt.db.read() as session:
        row = (await session.scalars(select(LinkTeam))).one()
        assert (row.primary_link_id, row.added_by) == (row.link_id, ada.id)
        assert list(await session.scalars(select(LinkTag.owner_id))) == [0]
    read = (await client.get(f"/api/v1/links/{made['id']}", headers=as_bob)).json()
    assert read | {"version": 1} == made
    history = (await client.get(f"/api/v1/links/{made['id']}/history", headers=as_bob)).json()
    assert [item["actor_id"] for item in history["items"]] == [str(ada.id)]
    listed = (await client.get("/api/v1/links?tag=plans", headers=as_bob)).json()["items"]
    assert [item["id"] for item in listed] == [made["id"]]


async def test_only_ones_own_teams_can_be_given_links(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, cleo: User
) -> None:
    await _populate(rt, ada, bob)
    async with rt.db.write() as session:
        as_cleo = by_key(await make.key(session, rt, cleo))

    for slug in ("crew", "nobodys"):
        response = await client.post("/api/v1/links", headers=as_cleo, json=NEW | {"team": slug})
        assert (response.status_code, response.json()["code"]) == (404, "TEAM_NOT_FOUND")
    async with rt.db.read() as session:
        assert list(await session.scalars(select(Link.id))) == []


async def test_rows_of_a_batch_have_owners_of_their_own(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    as_ada, _ = await _populate(rt, ada, bob)
    rows = [NEW, NEW | {"team": None}, NEW | {"team": "nobodys"}]

    results = (await client.post("/api/v1/links/bulk", headers=as_ada, json={"links": rows})).json()
    assert [row["status"] for row in results["results"]] == [201, 201, 404]
    of_team, own, _ = [row["link"] for row in results["results"]]
    assert (of_team["owners"], len(of_team["teams"])) == ([], 1)
    assert (len(own["owners"]), own["teams"]) == (1, [])
    assert await _owners(rt, int(own["id"])) == {ada.id: (int(own["id"]), None)}


@on_sqlite
async def test_an_existing_link_counts_only_if_the_team_owns_it(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    as_ada, as_bob = await _populate(rt, ada, bob)
    wanted = NEW | {"find_if_exists": True}
    own = await client.post("/api/v1/links", headers=as_ada, json=NEW | {"team": None})

    made = await client.post("/api/v1/links", headers=as_ada, json=wanted)
    found = await client.post("/api/v1/links", headers=as_bob, json=wanted)
    assert [response.status_code for response in (own, made, found)] == [201, 201, 200]
    assert found.json()["id"] == made.json()["id"]


async def test_a_file_knows_the_team_that_owns_a_link(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, cleo: User
) -> None:
    as_ada, _ = await _populate(rt, ada, bob)
    new = NEW | {"names": ["plan"], "visibility": "team"}
    made = (await client.post("/api/v1/links", headers=as_ada, json=new)).json()

    async with rt.db.read() as session:
        card = await queries.load_card(session, await session.get_one(Link, int(made["id"])))
    writer = LinkExportWriter(LinkExportFormat.CSV)
    record = build_record(card, rt.clock.now()) | {"id": "", "code": "", "names": ["again"]}
    text = f"{writer.head()}{writer.page([record])}".encode()
    rows = list(open_link_file(io.BytesIO(text), rt.clock.now()))
    refused = await LinkImporter(rt, make.space(rt), cleo).import_batch(rows)
    assert [(row.outcome, row.why) for row in refused] == [
        (LinkImportOutcome.REFUSED, "Team not found.")
    ]
    created = await LinkImporter(rt, make.space(rt), bob).import_batch(rows)
    assert [row.outcome for row in created] == [LinkImportOutcome.CREATED]
    listed = (await client.get("/api/v1/links?visibility=team", headers=as_ada)).json()["items"]
    assert [(item["names"], item["teams"][0]["primary"]) for item in listed] == [
        (["again"], True),
        (["plan"], True),
    ]


@on_sqlite
async def test_the_form_offers_the_teams_of_the_user(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, cleo: User
) -> None:
    await _populate(rt, ada, bob)
    async with rt.db.write() as session:
        as_ada, as_cleo = [
            by_cookie(rt, await make.cookie(session, rt, user)) for user in (ada, cleo)
        ]

    form = (await client.get("/app/links/new", headers=as_ada)).text
    assert '<option value="crew">Crew</option>' in form
    assert '<option value="team">' in form
    without = (await client.get("/app/links/new", headers=as_cleo)).text
    assert "Crew" not in without
    assert '<option value="team">' not in without

    fields = {"destination": "https://example.com/", "team": "crew", "visibility": "team"}
    made = await client.post("/app/links", headers=as_ada, data=fields | {"then": "link"})
    page = (await client.get(f"{made.headers['location']}?tab=people", headers=as_ada)).text
    assert "Crew" in page
    refused = await client.post("/app/links", headers=as_cleo, data=fields)
    assert refused.status_code == 422
    assert "Team not found." in refused.text
