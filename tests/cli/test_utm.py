"""`refract utm`, and templates set by `refract shorten` and `refract links edit`."""

import json

from tests.cli.conftest import Run
from tests.cli.test_links import link, ok, people, refused

__all__ = ["people"]
ADA = "ada@example.com"


def test_templates_are_kept_and_set_in_destinations(run: Run, people: None) -> None:
    assert "No templates yet" in ok(run("utm", "list"))
    refused(run("utm", "create", "Empty"), "at least one parameter", code=2)
    ok(run("utm", "create", "Newsletter", "--source", "news", "--medium", "email"))
    ok(run("teams", "create", "Crew"))
    ok(run("utm", "create", "Ads", "--source", "ads", "--team", "crew"))
    assert "utm_source=news utm_medium=email" in ok(run("utm", "list"))

    url = "https://example.com/plan?utm_source=old&x=1"
    ok(run("shorten", url, "--name", "plan", "--utm", "newsletter"))
    tagged = "https://example.com/plan?utm_source=news&x=1&utm_medium=email"
    assert link(run, "plan")["destination"] == tagged
    refused(run("shorten", url, "--utm", "newsletter", "--user", ADA), "not found")
    refused(run("links", "edit", "plan", "--utm", "absent"), "not found")

    edited = ok(run("utm", "edit", "newsletter", "--name", "Letter", "--medium", "", "--json"))
    assert (json.loads(edited)["name"], json.loads(edited)["utm_medium"]) == ("Letter", None)
    assert link(run, "plan")["destination"] == tagged
    ok(run("links", "edit", "plan", "--utm", "Ads"))
    assert link(run, "plan")["destination"] == tagged.replace("=news", "=ads")

    assert ok(run("utm", "delete", "letter")) == "Deleted Letter.\n"
    assert [row["name"] for row in json.loads(ok(run("utm", "list", "--json")))] == ["Ads"]
    assert "No templates yet" in ok(run("utm", "list", "--user", ADA))
