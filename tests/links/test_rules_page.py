"""The tab of a link's rules: its form, order, removal, and which rule decides for a visitor."""

from typing import Any

import pytest
from httpx import AsyncClient, Response

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.pages.rule_forms import AGENTS
from refract.links.rules.document import MAX_RULES
from tests import make
from tests.client import by_cookie, on_sqlite

pytestmark = on_sqlite
DEFAULT = "https://example.com/default"
FILLED = {
    "destination": "https://example.com/rule",
    "devices": ["mobile", "tablet"],
    "systems": ["ios"],
    "browsers": ["safari"],
    "countries": "de, AT",
    "languages": "de, fr-CA",
    "parameters": "ref=mail, beta",
    "referrers": "news.example.com",
    "after": "2026-03-01T08:00",
    "after_zone": "-60",
    "before": "2026-04-01T08:00",
    "days": ["mon", "fri"],
    "begin": "09:00",
    "end": "17:00",
    "zone": "Europe/Berlin",
    "share": "50",
}
CONDITIONS = {
    "devices": ["mobile", "tablet"],
    "systems": ["ios"],
    "browsers": ["safari"],
    "countries": ["DE", "AT"],
    "languages": ["de", "fr-ca"],
    "query": [{"name": "ref", "value": "mail"}, {"name": "beta", "value": None}],
    "referrers": ["news.example.com"],
    "after": "2026-03-01T07:00:00Z",
    "before": "2026-04-01T08:00:00Z",
    "hours": {
        "days": ["mon", "fri"],
        "begin": "09:00",
        "end": "17:00",
        "zone": "Europe/Berlin",
    },
    "share": 50,
}


@pytest.fixture
async def as_ada(client: AsyncClient, rt: Runtime, ada: User) -> AsyncClient:
    async with rt.db.write() as session:
        client.headers.update(by_cookie(rt, await make.cookie(session, rt, ada)))
    return client


@pytest.fixture
async def page(rt: Runtime, ada: User) -> str:
    """The path of the page of a link."""
    async with rt.db.write() as session:
        return f"/app/links/{(await make.link(session, rt, ada, DEFAULT, name='store')).id}"


async def _list_rules(client: AsyncClient, page: str) -> list[dict[str, Any]]:
    path = f"/api/v1/links/{page.rpartition('/')[2]}/rules"
    rules: list[dict[str, Any]] = (await client.get(path)).json()["rules"]
    return rules


async def _add(client: AsyncClient, page: str, letter: str, **fields: Any) -> Response:
    """Add a rule to a destination that ends with a letter."""
    given = {"destination": f"https://example.com/{letter}", **fields}
    return await client.post(f"{page}/rules", data=given)


async def _order(client: AsyncClient, page: str) -> str:
    return "".join(rule["destination"][-1] for rule in await _list_rules(client, page))


async def test_a_filled_form_is_stored_and_shown_again_as_it_was(
    as_ada: AsyncClient, page: str
) -> None:
    assert (await as_ada.post(f"{page}/rules", data=FILLED)).status_code == 303
    (rule,) = await _list_rules(as_ada, page)
    assert rule == {"number": 1, "destination": FILLED["destination"], "conditions": CONDITIONS}

    form = (await as_ada.get(f"{page}?tab=rules&rule=1")).text
    assert 'value="ref=mail, beta"' in form
    assert 'value="DE, AT"' in form
    assert 'value="2026-03-01T07:00"' in form
    assert 'value="fri" checked' in form

    changed = FILLED | {"countries": "CH", "after_zone": "0", "after": ""}
    assert (await as_ada.post(f"{page}/rules/1", data=changed)).status_code == 303
    (rule,) = await _list_rules(as_ada, page)
    assert (rule["number"], rule["conditions"]["countries"]) == (1, ["CH"])
    assert rule["conditions"]["after"] is None


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({}, "destination", "A rule needs at least one condition."),
        ({"share": "5", "zone": "Europe/Berlin"}, "days", "Choose the weekdays of these hours"),
        ({"share": "5", "begin": "10:00", "end": "17:00"}, "days", "Choose the weekdays"),
        ({"countries": "Germany"}, "countries", ""),
        ({"languages": "no language"}, "languages", ""),
        ({"referrers": "https://a/b"}, "referrers", "Enter a host, such as example.com."),
        ({"share": "101"}, "share", ""),
        ({"share": "half"}, "share", ""),
        ({"days": ["mon"], "begin": "9", "end": "17:00", "zone": "UTC"}, "begin", ""),
        ({"days": ["mon"], "begin": "09:00", "end": "17:00", "zone": "Mars"}, "zone", ""),
        ({"after": "yesterday"}, "after", ""),
        ({"after": "2026-03-02T00:00", "before": "2026-03-01T00:00"}, "after", "earlier than"),
        ({"destination": "ftp://example.com", "share": "1"}, "destination", ""),
    ],
)
async def test_what_is_wrong_is_said_at_its_field_and_what_was_typed_stays(
    as_ada: AsyncClient, page: str, fields: dict[str, Any], field: str, words: str
) -> None:
    kept = {"parameters": "kept=1"} if fields else {"begin": "09:00", "end": "17:00"}
    said = await _add(as_ada, page, "a", **kept | fields)
    assert said.status_code == 422
    assert f'id="field-{field}-error"' in said.text
    assert words in said.text
    assert f'value="{next(iter(kept.values()))}"' in said.text
    assert await _list_rules(as_ada, page) == []


async def test_rules_are_moved_removed_and_restored(as_ada: AsyncClient, page: str) -> None:
    for letter in "abc":
        assert (await _add(as_ada, page, letter, share="10")).status_code == 303
    assert await _order(as_ada, page) == "abc"

    for number, by, expected in (
        (3, -1, "acb"),
        (3, -1, "cab"),
        (3, -1, "cab"),
        (2, 1, "cab"),
        (3, 5, "abc"),
        (9, 1, "abc"),
    ):
        moved = await as_ada.post(f"{page}/rules/{number}/move", data={"by": str(by)})
        assert moved.status_code == 303
        assert await _order(as_ada, page) == expected

    for _ in range(2):  # once it is gone, there is nothing to do
        assert (await as_ada.post(f"{page}/rules/2/remove")).status_code == 303
        assert await _order(as_ada, page) == "ac"
    assert (await as_ada.post(f"{page}/undo")).status_code == 303
    assert await _order(as_ada, page) == "abc"


async def test_a_rule_that_is_gone_is_added_again(as_ada: AsyncClient, page: str) -> None:
    await _add(as_ada, page, "a", share="10")
    await as_ada.post(f"{page}/rules/1/remove")
    given = {"destination": "https://example.com/b", "share": "20"}
    assert (await as_ada.post(f"{page}/rules/1", data=given)).status_code == 303
    (rule,) = await _list_rules(as_ada, page)
    assert (rule["number"], rule["destination"]) == (2, "https://example.com/b")


async def test_a_full_list_of_rules_offers_no_other_and_takes_none(
    as_ada: AsyncClient, page: str
) -> None:
    path = f"/api/v1{page.removeprefix('/app')}/rules"
    rule = {"destination": "https://example.com/a", "conditions": {"share": 1}}
    assert (await as_ada.put(path, json={"rules": [rule] * MAX_RULES})).status_code == 200
    assert f"at most {MAX_RULES} rules" in (await as_ada.get(f"{page}?tab=rules")).text
    assert (await _add(as_ada, page, "b", share="1")).status_code == 422
    assert len(await _list_rules(as_ada, page)) == MAX_RULES


async def test_a_deleted_link_keeps_its_rules(as_ada: AsyncClient, page: str) -> None:
    await _add(as_ada, page, "a", share="10")
    await as_ada.post(f"{page}/delete")
    assert "/rules/1/move" not in (await as_ada.get(f"{page}?tab=rules")).text
    refused = await as_ada.post(f"{page}/rules/1/remove")
    assert refused.status_code == 409
    assert 'role="alert"' in refused.text


async def test_the_decision_is_that_of_resolve(as_ada: AsyncClient, page: str) -> None:
    await _add(as_ada, page, "a", systems=["ios"], countries="DE")
    await _add(as_ada, page, "b", languages="de", parameters="ref")
    tries = [
        ({"agent": "iphone", "country": "DE"}, "", 1),
        ({"agent": "iphone", "country": "FR"}, "", None),
        ({"agent": "linux", "language": "de-AT"}, "ref=1", 2),
    ]
    for typed, query, expected in tries:
        shown = (await as_ada.get(page, params={"tab": "rules", "query": query, **typed})).text
        visitor = {
            "agent": AGENTS[typed["agent"]][1],
            "country": typed.get("country"),
            "languages": typed.get("language", ""),
        }
        body = {"path": f"/store?{query}", "visitor": visitor}
        resolved = (await as_ada.post("/api/v1/resolve", json=body)).json()
        assert resolved["rule"] == expected
        assert (f"Rule {expected} decides" if expected else "No rule matches") in shown
        met = [said["matched"] for rule in resolved["rules"] for said in rule["conditions"]]
        assert shown.count("condition-met") == met.count(True)
        assert shown.count("condition-unmet") == met.count(False)


async def test_a_visitor_who_cannot_be_is_refused_in_the_panel(
    as_ada: AsyncClient, page: str
) -> None:
    await _add(as_ada, page, "a", share="10")
    for typed in ({"country": "Germany"}, {"at": "yesterday"}):
        shown = await as_ada.get(page, params={"tab": "rules", **typed})
        assert shown.status_code == 200
        assert f'id="field-{next(iter(typed))}-error"' in shown.text


async def test_the_chosen_visitor_stays_after_a_change(
    as_ada: AsyncClient, rt: Runtime, page: str
) -> None:
    came_from = f"{rt.settings.public_url}{page}?tab=rules&agent=ipad&rule=new"
    given = {"destination": "https://example.com/a", "share": "10"}
    answer = await as_ada.post(f"{page}/rules", data=given, headers={"Referer": came_from})
    assert answer.headers["location"] == f"{page}?tab=rules&agent=ipad"


async def test_viewers_see_no_rules(
    as_ada: AsyncClient, rt: Runtime, ada: User, bob: User, page: str
) -> None:
    await _add(as_ada, page, "secret", share="10")
    async with rt.db.write() as session:
        await service.share_link(
            session, make.who(ada), int(page.rpartition("/")[2]), bob.email, rt.clock.now()
        )
        as_bob = by_cookie(rt, await make.cookie(session, rt, bob))
    shown = await as_ada.get(f"{page}?tab=rules", headers=as_bob)
    assert shown.status_code == 200
    assert "secret" not in shown.text
    for fields in ({}, {"destination": "https://example.com/x", "share": "1"}):
        refused = await as_ada.post(f"{page}/rules", data=fields, headers=as_bob)
        assert refused.status_code == 403
        assert "secret" not in refused.text


async def test_a_rule_is_tried_while_it_is_typed(
    as_ada: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, DEFAULT, name="typed")
    page = f"/app/links/{link.id}"

    async def try_rule(rule: str, **typed: Any) -> str:
        params = {"tab": "rules", "rule": rule, "agent": "iphone", "begin": "09:00", **typed}
        answer = await as_ada.get(page, params=params | {"end": "17:00"})
        assert answer.status_code == 200
        assert answer.headers["hx-replace-url"] == f"{page}?tab=rules&agent=iphone&rule={rule}"
        return answer.text

    new = {"destination": "draft.example/x", "devices": ["mobile", "tablet"]}
    shown = await try_rule("new", **new)
    assert "Rule 1 decides" in shown
    assert "With the rule as it is typed" in shown
    assert "draft.example" in shown
    assert (await as_ada.get(f"/api/v1{page.removeprefix('/app')}/rules")).json()["rules"] == []
    assert "isn’t tried yet: A rule needs at least one condition" in await try_rule(
        "new", destination="https://a.example/"
    )
    assert "isn’t tried yet: " in await try_rule("new", **new | {"destination": "ftp://a.example/"})

    kept = {"destination": "https://kept.example/", "conditions": {"devices": ["desktop"]}}
    path = f"/api/v1/links/{link.id}/rules"
    assert (await as_ada.put(path, json={"rules": [kept]})).status_code == 200
    assert "No rule matches" in await try_rule("1", destination="https://a.example/", devices="bot")
    shown = await try_rule("1", destination="https://a.example/", devices=["bot", "mobile"])
    assert "Rule 1 decides" in shown
    shown = await try_rule("new", **new)
    assert "Rule 2 decides" in shown
    assert (await as_ada.get(page, params={"tab": "rules"})).headers.get("hx-replace-url") is None
