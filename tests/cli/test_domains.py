"""`refract domains`."""

import json
from typing import Any

from tests.cli.conftest import Run
from tests.cli.test_links import ok, people, refused

__all__ = ["people"]
ADA = "ada@example.com"


def domain(run: Run, host: str = "sho.rt") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ok(run("domains", "show", host, "--json")))
    return found


def test_a_domain_is_created_changed_and_deleted(run: Run, people: None) -> None:
    assert "No other domains yet" in ok(run("domains", "list"))
    urls = ("--root-url", "www.example.com", "--gone-url", "https://example.com/gone")
    made = ok(run("domains", "create", "Sho.rt", "--title", "Spring", *urls))
    assert made.startswith("Added sho.rt.")
    refused(run("domains", "create", "sho.rt"), "already exists")
    assert domain(run)["root_destination"] == "https://www.example.com/"

    ok(run("domains", "update", "sho.rt", "--root-url", "", "--default-status", "301"))
    changed = domain(run)
    assert (changed["root_destination"], changed["default_redirect_status"]) == (None, 301)
    assert (changed["title"], changed["gone_destination"]) == ("Spring", "https://example.com/gone")
    assert "Spring" in ok(run("domains", "show", "sho.rt"))

    assert ok(run("domains", "disable", "sho.rt")) == "Disabled sho.rt.\n"
    (listed,) = json.loads(ok(run("domains", "list", "--json")))
    assert (listed["host"], listed["state"]) == ("sho.rt", "disabled")
    assert ok(run("domains", "enable", "sho.rt")) == "Enabled sho.rt.\n"
    assert ok(run("domains", "delete", "sho.rt")) == "Deleted sho.rt.\n"
    refused(run("domains", "show", "sho.rt"), "no domain")


def test_a_team_gets_a_domain(run: Run, people: None) -> None:
    ok(run("teams", "create", "Campaigns"))
    ok(run("teams", "add", "campaigns", ADA))
    ok(run("domains", "create", "team.example", "--team", "campaigns"))
    ok(run("domains", "create", "root.example", "--creators", "administrators"))

    found = json.loads(ok(run("domains", "list", "--user", ADA, "--json")))

    assert [(row["host"], row["team"]) for row in found] == [("team.example", "campaigns")]
    assert "team campaigns" in ok(run("domains", "list"))


def test_bad_options_are_refused(run: Run, people: None) -> None:
    refused(run("domains", "create", "https://sho.rt/"), "only the host", code=2)
    refused(run("domains", "create", "sho.rt", "--root-url", "ftp://example.com"), "http", code=2)
    refused(run("domains", "create", "sho.rt", "--default-status", "303"), "default-status", code=2)
    refused(run("domains", "create", "mine.example", "--user", ADA), "administrator")
    refused(run("domains", "delete", "sho.rt"), "no domain")


def test_a_link_is_created_and_found_on_a_domain(run: Run, people: None) -> None:
    ok(run("domains", "create", "sho.rt"))
    ok(run("shorten", "https://example.com/", "--name", "one"))

    made = ok(run("shorten", "https://example.com/", "--name", "one", "--domain", "sho.rt"))

    assert made == "https://sho.rt/one\n"
    (found,) = json.loads(ok(run("links", "list", "--domain", "sho.rt", "--json")))["items"]
    assert found["short_url"] == "https://sho.rt/one"
    ok(run("domains", "create", "other.example"))
    assert ok(run("links", "list", "--domain", "other.example")) == "No links found.\n"
    listed = ok(run("links", "list")).splitlines()[1:]
    assert {line.split()[0] for line in listed} == {"one", "sho.rt/one"}
    ok(run("links", "names", "add", "sho.rt/one", "two", "--domain", "other.example"))
    assert "one, other.example/two" in ok(run("links", "show", "sho.rt/one"))
    refused(run("links", "names", "release", "sho.rt/one", "two"), "two")
    ok(run("links", "names", "release", "sho.rt/one", "two", "--domain", "other.example"))
    assert "two" not in ok(run("links", "show", "sho.rt/one"))
    refused(run("domains", "delete", "sho.rt"), "(1)")
    refused(run("shorten", "https://example.com/", "--domain", "absent.example"), "no domain")


def test_a_name_on_another_domain_is_suggested(run: Run, people: None) -> None:
    """Every command on a link says where the name is, to those who may see its link."""
    ok(run("domains", "create", "sho.rt"))
    ok(run("shorten", "https://example.com/", "--name", "x1", "--domain", "sho.rt"))
    ok(run("shorten", "https://example.com/", "--name", "here"))
    for command in (("stats",), ("links", "show")):
        refused(run(*command, "x1"), "Did you mean sho.rt/x1?")
        refused(run(*command, "X1", "--user", ADA), 'no link "X1".\n')
    refused(run("stats", "sho.rt/here"), "Did you mean here?")
    ok(run("stats", "sho.rt/x1"))
