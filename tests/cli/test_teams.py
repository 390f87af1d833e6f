"""`refract teams` and `refract links teams`."""

import json

import pytest

from tests.cli.conftest import Run
from tests.cli.test_links import link, ok, people, refused

__all__ = ["people"]
ADA, BOB = "ada@example.com", "bob@example.com"


@pytest.fixture
def crew(run: Run, people: None) -> None:
    """A team of Ada's, with Bob in it."""
    ok(run("teams", "create", "The Crew", "--handle", "crew"))
    ok(run("teams", "add", "crew", ADA, "--role", "manager"))
    ok(run("teams", "add", "crew", BOB, "--user", ADA))


def test_a_team_is_created_listed_renamed_and_deleted(run: Run, people: None) -> None:
    assert "refract teams add sales EMAIL" in ok(run("teams", "create", "Sales"))
    refused(run("teams", "create", "Mine", "--user", ADA), "Only administrators")
    refused(run("teams", "create", "Again", "--handle", "sales"), "already a team")
    ok(run("teams", "edit", "sales", "--name", "Sales & Co", "--handle", "sell"))

    (team,) = json.loads(ok(run("teams", "list", "--json")))
    assert (team["slug"], team["name"], team["members"]) == ("sell", "Sales & Co", 1)
    refused(run("teams", "members", "sell", "--user", ADA), "not found")

    assert ok(run("teams", "delete", "sell")) == "Deleted sell.\n"
    assert "No teams yet" in ok(run("teams", "list", "--all"))


def test_members_come_rise_and_go(run: Run, crew: None) -> None:
    refused(run("teams", "remove", "crew", ADA, "--user", BOB), "Only managers")
    ok(run("teams", "role", "crew", BOB, "manager", "--user", ADA))
    assert ok(run("teams", "remove", "crew", ADA, "--user", BOB)) == f"Removed {ADA} from crew.\n"

    found = json.loads(ok(run("teams", "members", "crew", "--json")))
    assert {member["email"]: member["role"] for member in found} == {
        BOB: "manager",
        "owner@localhost": "manager",
    }
    refused(run("teams", "remove", "crew", ADA), "aren't a member")


def test_a_link_is_given_to_a_team_and_taken_back(run: Run, crew: None) -> None:
    ok(run("shorten", "https://example.com/one", "--name", "one", "--user", ADA))
    ok(run("links", "teams", "add", "one", "crew", "--user", ADA))
    assert [team["slug"] for team in link(run, "one")["teams"]] == ["crew"]
    assert "one" in ok(run("links", "list", "--team", "crew", "--user", BOB))
    assert "The Crew (co-owner)" in ok(run("links", "show", "one"))
    ok(run("links", "teams", "remove", "one", "crew", "--user", BOB))
    refused(run("links", "teams", "remove", "one", "crew", "--user", ADA), "doesn't own")

    ok(run("links", "teams", "transfer", "one", "crew", "--user", ADA))
    assert link(run, "one")["owners"] == []
    refused(run("teams", "delete", "crew"), "still owns links (1)")


def test_a_new_link_is_the_teams_own(run: Run, crew: None) -> None:
    ok(run("shorten", "https://example.com/one", "--name", "one", "--team", "crew", "--user", BOB))
    made = link(run, "one")
    assert (made["owners"], [team["slug"] for team in made["teams"]]) == ([], ["crew"])
    refused(run("shorten", "https://example.com/two", "--team", "nobodys"), "not found")


def test_a_team_gives_its_new_links_tags_and_inherits_those_of_who_leaves(
    run: Run, crew: None
) -> None:
    ok(run("teams", "defaults", "crew", "--tag", "Plans", "--tag", "Q4", "--user", ADA))
    refused(run("teams", "defaults", "crew", "--domain", "no.example"), "no domain")
    refused(run("teams", "defaults", "crew", "--user", BOB), "Only managers")
    ok(run("shorten", "https://example.com/", "--name", "plan", "--team", "crew", "--user", BOB))
    assert json.loads(ok(run("links", "show", "plan", "--json")))["tags"] == ["Plans", "Q4"]

    ok(run("shorten", "https://example.com/", "--name", "own", "--user", BOB))
    ok(run("admin", "delete", BOB, "--reassign-to", "crew", "--yes"))
    left = json.loads(ok(run("links", "show", "own", "--json")))
    assert ([team["slug"] for team in left["teams"]], left["owners"]) == (["crew"], [])
