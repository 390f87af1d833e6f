"""UTM templates: whose they are, and the destinations of links that they are applied to."""

from typing import Any

from httpx import AsyncClient
from sqlalchemy import func, select

from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from refract.links.campaigns.models import UtmTemplate
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.dump import dump

PATH = "/api/v1/utm-templates"
NEWS = {"name": "Newsletter", "utm_source": "news", "utm_medium": "email"}
Headers = dict[str, str]


async def _add(client: AsyncClient, headers: Headers, **given: Any) -> dict[str, Any]:
    made = await client.post(PATH, headers=headers, json=NEWS | given)
    assert made.status_code == 201, made.text
    created: dict[str, Any] = made.json()
    return created


async def _names(client: AsyncClient, headers: Headers) -> list[tuple[str | None, str]]:
    listed = (await client.get(PATH, headers=headers)).json()["items"]
    return [(template["team"], template["name"]) for template in listed]


async def test_a_template_is_made_changed_and_deleted(
    client: AsyncClient, as_ada: Headers, as_bob: Headers
) -> None:
    made = await _add(client, as_ada, utm_term=" ", utm_campaign="Grüße & more ")
    url = f"{PATH}/{made['id']}"
    shown = {key: made[key] for key in ("name", "team", "utm_source", "utm_campaign", "utm_term")}
    assert shown == {
        "name": "Newsletter",
        "team": None,
        "utm_source": "news",
        "utm_campaign": "Grüße & more",
        "utm_term": None,
    }
    assert (await client.get(url, headers=as_ada)).json() == made
    twice = await client.post(PATH, headers=as_ada, json=NEWS | {"name": " newsLETTER"})
    assert (twice.status_code, twice.json()["code"]) == (409, "UTM_TEMPLATE_EXISTS")
    await _add(client, as_bob)  # his own may have the same name

    changes = {"name": "NEWSLETTER", "utm_campaign": None}
    changed = (await client.patch(url, headers=as_ada, json=changes)).json()
    assert (changed["name"], changed["utm_source"], changed["utm_campaign"]) == (
        *("NEWSLETTER", "news"),
        None,
    )
    blank = {"utm_source": None, "utm_medium": ""}
    emptied = await client.patch(url, headers=as_ada, json=blank)
    unnamed = await client.patch(url, headers=as_ada, json={"name": None})
    assert (unnamed.status_code, unnamed.json()["code"]) == (422, "VALIDATION_FAILED")
    assert (emptied.status_code, emptied.json()["code"]) == (422, "UTM_TEMPLATE_EMPTY")
    assert (await client.get(url, headers=as_ada)).json() == changed

    await _add(client, as_ada, name="ads")
    assert await _names(client, as_ada) == [(None, "ads"), (None, "NEWSLETTER")]
    assert (await client.delete(url, headers=as_ada)).status_code == 204
    assert await _names(client, as_ada) == [(None, "ads")]
    assert await _names(client, as_bob) == [(None, "Newsletter")]


async def test_members_of_a_team_share_its_templates(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, as_ada: Headers, as_bob: Headers
) -> None:
    async with rt.db.write() as session:
        crew = await make.team(session, rt, ada)
        service = by_key(await make.team_key(session, rt, crew, ada))
    made = await _add(client, as_ada, team="crew")
    assert made["team"] == "crew"
    url = f"{PATH}/{made['id']}"
    for method in ("GET", "DELETE"):
        assert (await client.request(method, url, headers=as_bob)).status_code == 404
    outsider = await client.post(PATH, headers=as_bob, json=NEWS | {"team": "crew"})
    assert (outsider.status_code, outsider.json()["code"]) == (404, "TEAM_NOT_FOUND")
    by_team_key = await _add(client, service, name="By a key")
    assert by_team_key["team"] == "crew"  # the account of a team has nothing of its own

    async with rt.db.write() as session:
        await make.join(session, rt, crew, bob)
    renamed = await client.patch(url, headers=as_bob, json={"name": "Ours"})
    assert renamed.status_code == 200, renamed.text
    await _add(client, as_bob, name="Mine")
    theirs = [("crew", "By a key"), ("crew", "Ours")]
    assert await _names(client, as_bob) == [(None, "Mine"), *theirs]
    assert await _names(client, as_ada) == await _names(client, service) == theirs

    async with rt.db.write() as session:
        await make.leave(session, rt, crew, bob)
    assert await _names(client, as_bob) == [(None, "Mine")]
    assert (await client.delete(f"/api/v1/teams/{crew.id}", headers=as_ada)).status_code == 204
    assert await _names(client, as_ada) == []
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(UtmTemplate)) == 1
        query = select(AuditEntry.action).where(AuditEntry.action.startswith("utm"))
        assert sorted(await session.scalars(query)) == [
            "utm_template.changed",
            *(["utm_template.created"] * 2),
        ]


async def test_a_template_is_applied_to_new_and_to_present_destinations(
    client: AsyncClient, as_ada: Headers, as_bob: Headers
) -> None:
    template = (await _add(client, as_ada, utm_content="{1}"))["id"]
    foreign = (await _add(client, as_bob))["id"]
    given = {
        "destination": "https://example.com/p/{1}?utm_source=old&utm_term=kept&x=1#top",
        "utm_template": template,
    }
    made = await client.post("/api/v1/links", headers=as_ada, json=given)
    assert made.json()["destination"] == (
        "https://example.com/p/{1}?utm_source=news&utm_term=kept&x=1"
        "&utm_medium=email&utm_content={1}#top"
    )
    refused = await client.post(
        "/api/v1/links", headers=as_ada, json=given | {"utm_template": foreign}
    )
    assert (refused.status_code, refused.json()["code"]) == (404, "UTM_TEMPLATE_NOT_FOUND")

    plain = {"destination": "https://example.com/plain"}
    rows = [plain, plain | {"utm_template": template}, plain | {"utm_template": foreign}]
    bulk = await client.post("/api/v1/links/bulk", headers=as_ada, json={"links": rows})
    assert [row["status"] for row in bulk.json()["results"]] == [201, 201, 404]
    tagged = "https://example.com/plain?utm_source=news&utm_medium=email&utm_content={1}"
    assert bulk.json()["results"][1]["link"]["destination"] == tagged
    link = bulk.json()["results"][0]["link"]
    url = f"/api/v1/links/{link['id']}"
    patched = await client.patch(url, headers=as_ada, json={"utm_template": template, "title": "T"})
    assert patched.status_code == 200, patched.text
    assert (patched.json()["title"], patched.json()["destination"]) == ("T", tagged)
    moved = {"destination": "https://example.com/moved?utm_source=x", "utm_template": template}
    assert (
        (await client.patch(url, headers=as_ada, json=moved))
        .json()["destination"]
        .startswith("https://example.com/moved?utm_source=news&utm_medium=email")
    )
    unknown = await client.patch(url, headers=as_ada, json={"utm_template": foreign})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "UTM_TEMPLATE_NOT_FOUND")
    hidden = await client.patch(url, headers=as_bob, json={"utm_template": foreign})
    assert (hidden.status_code, hidden.json()["code"]) == (404, "LINK_NOT_FOUND")


@on_sqlite
async def test_ones_own_templates_are_exported_and_leave_with_the_account(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada, *make.OWN))
        await make.team(session, rt, ada)
    await _add(client, key, name="canary own")
    await _add(client, key, name="of the team", team="crew")
    exported = (await client.get("/api/v1/me/export", headers=key)).json()
    assert [row["name"] for row in exported["utm_templates"]] == ["canary own"]

    assert (await client.delete("/api/v1/me", headers=key)).status_code == 204
    left = await dump(rt)
    assert "canary own" not in left
    assert "of the team" in left


@on_sqlite
async def test_the_page_keeps_templates_and_the_form_sets_them(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        as_ada = by_cookie(rt, await make.cookie(session, rt, ada))
        await make.team(session, rt, ada)
    page = "/app/utm-templates"
    assert "No templates yet" in (await client.get(page, headers=as_ada)).text
    assert (
        "Keep parameters as a template" in (await client.get("/app/links/new", headers=as_ada)).text
    )

    form = {"name": "News", "utm_source": "news", "team": "crew"}
    assert (await client.post(page, headers=as_ada, data=form)).status_code == 303
    again = await client.post(page, headers=as_ada, data=form | {"utm_term": "typed"})
    assert (again.status_code, 'value="typed"' in again.text) == (409, True)
    unnamed = await client.post(page, headers=as_ada, data=form | {"name": " "})
    assert (unnamed.status_code, "This field is required." in unnamed.text) == (422, True)
    empty = await client.post(page, headers=as_ada, data={"name": "Empty"})
    assert (empty.status_code, "at least one parameter" in empty.text) == (422, True)

    (template,) = (await client.get(PATH, headers=as_ada)).json()["items"]
    changed = {"name": "News", "utm_source": "", "utm_medium": "email"}
    saved = await client.post(f"{page}/{template['id']}", headers=as_ada, data=changed)
    assert saved.status_code == 303
    assert "utm_medium=email" in (await client.get(page, headers=as_ada)).text
    edit = (await client.get(f"{page}?edit={template['id']}", headers=as_ada)).text
    assert 'value="email"' in edit

    new = (await client.get("/app/links/new", headers=as_ada)).text
    assert f'<option value="{template["id"]}">News (Crew)</option>' in new
    link = {
        "destination": "https://example.com/?utm_medium=x",
        "name": "plan",
        "utm_template": template["id"],
        "then": "link",
    }
    made = await client.post("/app/links", headers=as_ada, data=link)
    assert made.status_code == 303, made.text
    api = f"/api/v1{made.headers['location'].removeprefix('/app')}"
    shown = (await client.get(api, headers=as_ada)).json()
    assert shown["destination"] == "https://example.com/?utm_medium=email"
    absent = await client.post(
        made.headers["location"], headers=as_ada, data={"utm_template": "361890234523648"}
    )
    assert (absent.status_code, "UTM template not found" in absent.text) == (404, True)

    assert (await client.post(f"{page}/{template['id']}/delete", headers=as_ada)).status_code == 303
    assert "No templates yet" in (await client.get(page, headers=as_ada)).text


@on_sqlite
async def test_a_template_is_set_in_selected_links(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        as_ada = by_cookie(rt, await make.cookie(session, rt, ada))
    template = (await _add(client, as_ada, utm_source=None))["id"]
    plain = await client.post(
        "/api/v1/links", headers=as_ada, json={"destination": "https://example.com/a?x=1"}
    )
    ids = [plain.json()["id"], "361890234523648"]
    index = (await client.get("/app/links", headers=as_ada)).text
    assert f'value="utm:{template}"' in index
    bulk = {"act": f"utm:{template}", "ids": ids}
    assert (await client.post("/app/links/bulk", headers=as_ada, data=bulk)).status_code == 303
    again = (await client.get(f"/api/v1/links/{ids[0]}", headers=as_ada)).json()
    assert again["destination"] == "https://example.com/a?x=1&utm_medium=email"
    undo = f"/app/links/undo?ids={ids[0]}"
    assert (await client.post(undo, headers=as_ada)).status_code == 303
    again = (await client.get(f"/api/v1/links/{ids[0]}", headers=as_ada)).json()
    assert again["destination"] == "https://example.com/a?x=1"
