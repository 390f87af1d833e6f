"""`refract shorten` and `refract links`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from refract.cli.common import parse_time
from refract.core.runtime import open_runtime
from refract.core.settings.model import Settings
from tests import make
from tests.cli.conftest import Ran, Run
from tests.conftest import START
from tests.redirect.test_qr_styles import decode, read_pixels
from tests.serving import refract


@pytest.fixture
def people(run: Run, data: Path) -> None:
    """Ada and Bob have accounts beside the owner."""
    assert run("links", "list").code == 0

    async def sign_up() -> None:
        async with open_runtime(Settings(data_dir=data)) as rt, rt.db.write() as session:
            for name in ("ada", "bob"):
                await make.person(session, rt, name)

    asyncio.run(sign_up())


def ok(ran: Ran) -> str:
    assert ran.code == 0, ran
    assert ran.err == ""
    return ran.out


def refused(ran: Ran, *words: str, code: int = 1) -> None:
    assert ran.code == code, ran
    assert ran.out == ""
    assert ran.err.count("\n") == 1  # one sentence
    for word in words:
        assert word in ran.err


def link(run: Run, which: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ok(run("links", "show", which, "--json")))
    return found


def test_shorten_prints_the_short_url_and_only_that(data: Path) -> None:
    made = refract(
        "shorten",
        "https://example.com/",
        "--name",
        "home",
        "--data-dir",
        str(data),
        REFRACT_BASE_URL="https://go.test",
    )

    assert (made.stdout, made.stderr, made.returncode) == ("https://go.test/home\n", "", 0)


def test_shorten_with_everything(run: Run) -> None:
    options = [
        "--name",
        "plan",
        "--name",
        "Plan-B",
        "--title",
        "The plan",
        "--notes",
        "n",
        "--tag",
        "a",
        "--tag",
        "B c",
        "--status",
        "308",
    ]
    made = json.loads(
        ok(
            run(
                "shorten",
                "https://example.com/plan",
                *options,
                "--visibility",
                "public",
                "--expires",
                "2099-12-31",
                "--json",
            )
        )
    )

    assert made == link(run, "plan-b")
    assert made["short_url"] == "https://go.test/plan"
    assert (made["names"], made["tags"], made["title"], made["notes"]) == (
        ["plan", "Plan-B"],
        ["a", "B c"],
        "The plan",
        "n",
    )
    assert (made["redirect_status"], made["visibility"]) == (308, "public")
    assert made["expires_at"] == "2099-12-31T23:59:59Z"


def test_shorten_finds_what_exists(run: Run) -> None:
    first = ok(run("shorten", "https://example.com/", "--status", "301"))

    assert ok(run("shorten", "https://EXAMPLE.com", "--find-if-exists")) == first
    assert (
        ok(run("shorten", "https://example.com/", "--find-if-exists", "--status", "302")) != first
    )
    assert ok(run("shorten", "https://example.com/")) != first


@pytest.mark.usefixtures("people")
def test_an_operator_is_not_limited_whoever_the_links_are_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFRACT_CREATES_PER_HOUR", "1")
    file = tmp_path / "links.csv"
    file.write_text(
        "destination,names\n"
        + "".join(f"https://example.com/{name},{name}\n" for name in ("one", "two"))
    )

    for _ in range(2):
        ok(run("shorten", "https://example.com/", "--user", "ada@example.com"))
    assert "2 created" in run("import", "links", file, "--user", "ada@example.com").out


def test_shorten_says_in_one_sentence_what_is_wrong(run: Run) -> None:
    refused(run("shorten", "javascript:alert(1)"), "Only http:// and https://", code=2)
    refused(run("shorten", "https://go.test/x"), "already a Refract link", code=2)
    refused(run("shorten", "https://example.com/", "--name", "app"), "is reserved", code=2)
    refused(run("shorten", "https://example.com/", "--name", "static"), "is reserved", code=2)
    refused(
        run("shorten", "https://example.com/", "--expires", "2020-01-01"), "in the future", code=2
    )
    refused(run("shorten", "https://example.com/", "--expires", "soon"), "30d", code=2)
    refused(
        run("shorten", "https://example.com/", "--status", "303"), "301, 302, 307 or 308", code=2
    )
    refused(run("shorten", "https://example.com/", "--title", "t" * 201), "title", "200", code=2)
    refused(run("shorten", "https://example.com/", "--user", "no@body"), "no active user")
    ok(run("shorten", "https://example.com/", "--name", "taken"))
    refused(run("shorten", "https://example.com/", "--name", "TAKEN"), "already in use")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("90m", "2026-06-01T13:30:00+00:00"),
        ("12h", "2026-06-02T00:00:00+00:00"),
        ("30d", "2026-07-01T12:00:00+00:00"),
        ("2w", "2026-06-15T12:00:00+00:00"),
        ("2026-12-31", "2026-12-31T23:59:59+00:00"),
        ("2026-12-31T18:00", "2026-12-31T18:00:00+00:00"),
        ("2026-12-31T18:00:00+02:00", "2026-12-31T16:00:00+00:00"),
    ],
)
def test_times_as_people_write_them(text: str, read: str) -> None:
    assert parse_time(text, START).isoformat() == read


def test_a_link_is_meant_by_name_code_id_or_address(run: Run) -> None:
    ok(run("shorten", "https://example.com/", "--name", "home"))
    made = link(run, "home")

    for meant in (
        "HOME",
        "/home",
        made["code"],
        made["id"],
        "https://go.test/home",
        f"https://go.test/{made['code']}?x=1",
        "home.",
    ):
        assert link(run, meant)["id"] == made["id"]
    refused(run("links", "show", "hme"), 'There\'s no link "hme".', "home")
    refused(run("links", "show", "9" * 30), "There's no link")


def test_the_life_of_a_link(run: Run) -> None:
    ok(run("shorten", "https://example.com/1", "--name", "one"))

    assert "Disabled one." in ok(run("links", "disable", "one"))
    refused(run("links", "disable", "one"), "disabled", "enable")
    assert "Enabled one." in ok(run("links", "enable", "one"))
    ok(
        run(
            "links",
            "edit",
            "one",
            "--title",
            "T",
            "--tag",
            "x",
            "--destination",
            "https://example.com/2",
            "--forward-query",
            "--expires",
            "9d",
        )
    )
    edited = link(run, "one")
    assert (edited["title"], edited["tags"], edited["destination"], edited["forward_query"]) == (
        "T",
        ["x"],
        "https://example.com/2",
        True,
    )
    ok(run("links", "edit", "one", "--title", "", "--tag", "", "--expires", "never"))
    cleared = link(run, "one")
    assert (cleared["title"], cleared["tags"], cleared["expires_at"]) == (None, [], None)
    assert "Undone" in ok(run("links", "undo", "one"))
    assert link(run, "one")["title"] == "T"
    assert "version 1" in ok(run("links", "revert", "one", "1"))
    assert link(run, "one")["destination"] == "https://example.com/1"
    assert "2099-01-01" in ok(run("links", "renew", "one", "--expires", "2099-01-01"))
    assert "never" in ok(run("links", "renew", "one"))
    assert "refract links undo" in ok(run("links", "delete", "one"))
    assert link(run, "one")["status"] == "deleted"
    refused(run("links", "edit", "one", "--title", "x"), "deleted")
    refused(run("links", "edit", "one"), "--help", code=2)
    refused(run("links", "revert", "one", "99"), "doesn't have a version 99")
    ok(run("links", "undo", "one"))

    told = [
        (one["version"], one["action"])
        for one in json.loads(ok(run("links", "history", "one", "--json")))
    ]
    assert [action for _, action in reversed(told)] == [
        "created",
        "disabled",
        "enabled",
        "edited",
        "edited",
        "undone",
        "reverted",
        "renewed",
        "renewed",
        "deleted",
        "undone",
    ]
    assert "https://example.com/1 → https://example.com/2" in ok(run("links", "history", "one"))


def test_names(run: Run) -> None:
    ok(run("shorten", "https://example.com/", "--name", "one"))

    assert "two" in ok(run("links", "names", "add", "one", "two"))
    assert link(run, "two")["names"] == ["one", "two"]
    refused(run("links", "names", "add", "one", "TWO"), "already in use")
    refused(run("links", "names", "add", "one", "{x}"), "is invalid", code=2)
    assert "available" in ok(run("links", "names", "release", "two", "one"))
    refused(run("links", "show", "one"), "There's no link")
    refused(run("links", "names", "release", "two", "one"), 'doesn\'t have the name "one"')


def test_owners_and_acting_as_somebody(run: Run, people: None) -> None:
    ok(run("shorten", "https://example.com/", "--name", "one", "--user", "ada@example.com"))

    refused(run("links", "show", "one", "--user", "bob@example.com"), "Link not found")
    ok(run("links", "owners", "add", "one", "bob@example.com", "--user", "ada@example.com"))
    assert [one["email"] for one in link(run, "one")["owners"]] == [
        "ada@example.com",
        "bob@example.com",
    ]
    refused(run("links", "owners", "add", "one", "BOB@example.com"), "already owns")
    refused(run("links", "owners", "remove", "one", "ada@example.com"), "primary owner")
    refused(
        run("links", "owners", "transfer", "one", "bob@example.com", "--user", "bob@example.com"),
        "only its primary owner",
    )
    ok(run("links", "owners", "transfer", "one", "bob@example.com"))
    ok(run("links", "owners", "remove", "one", "ADA@example.com"))
    assert [one["email"] for one in link(run, "one")["owners"]] == ["bob@example.com"]
    refused(run("links", "owners", "remove", "one", "ada@example.com"), "doesn't own")
    assert json.loads(ok(run("links", "list", "--user", "ada@example.com", "--json"))) == {
        "items": [],
        "next_cursor": None,
    }
    refused(run("links", "list", "--owner", "all", "--user", "ada@example.com"), "administrators")
    assert [
        one["names"]
        for one in json.loads(ok(run("links", "list", "--owner", "all", "--json")))["items"]
    ] == [["one"]]


def test_lists_for_people_and_for_scripts(run: Run) -> None:
    assert "refract shorten" in ok(run("links", "list"))
    for number in range(3):
        ok(
            run(
                "shorten",
                f"https://example.com/{number}",
                "--name",
                f"n{number}",
                "--tag",
                "even" if number % 2 == 0 else "odd",
            )
        )
    ok(run("links", "disable", "n1"))

    table = ok(run("links", "list")).splitlines()
    assert table[0].split() == ["link", "destination", "title", "status", "clicks", "created"]
    assert [line.split()[0] for line in table[1:]] == ["n2", "n1", "n0"]
    assert [
        line.split()[0] for line in ok(run("links", "list", "--tag", "Even")).splitlines()[1:]
    ] == ["n2", "n0"]
    assert [
        line.split()[0]
        for line in ok(run("links", "list", "--status", "disabled")).splitlines()[1:]
    ] == ["n1"]
    assert [
        line.split()[0] for line in ok(run("links", "list", "example.com/0")).splitlines()[1:]
    ] == ["n0"]
    assert ok(run("links", "list", "nothing-like-it")) == "No links found.\n"
    page = json.loads(ok(run("links", "list", "--limit", "2", "--json")))
    rest = json.loads(
        ok(run("links", "list", "--limit", "2", "--json", "--cursor", page["next_cursor"]))
    )
    assert [one["names"][0] for one in page["items"] + rest["items"]] == ["n2", "n1", "n0"]
    assert rest["next_cursor"] is None
    assert "There are more" in run("links", "list", "--limit", "1").err


def test_foreign_text_cannot_speak_to_the_terminal(run: Run) -> None:
    ok(
        run(
            "shorten",
            "https://example.com/",
            "--name",
            "evil",
            "--title",
            "\x1b[2J[red]x[/red]",
            "--notes",
            "\x1b]0;t\x07",
        )
    )

    for shown in (
        ok(run("links", "list")),
        ok(run("links", "show", "evil")),
        ok(run("links", "history", "evil")),
    ):
        assert "\x1b" not in shown
        assert "\x07" not in shown
    assert "[red]x[/red]" in ok(run("links", "list"))


def test_where_a_path_would_lead(run: Run) -> None:
    ok(run("shorten", "https://jira.example.com/browse/{key}?v={view=all}", "--name", "jira"))
    ok(run("shorten", "https://example.com/docs", "--name", "papers"))

    assert (
        ok(run("links", "resolve", "/jira/PROJ-1"))
        == "https://jira.example.com/browse/PROJ-1?v=all\n"
    )
    assert (
        ok(run("links", "resolve", "https://go.test/papers/a/b?q=1"))
        == "https://example.com/docs/a/b\n"
    )
    refused(run("links", "resolve", "jira"), "needs a value for {key}")
    refused(run("links", "resolve", "/papers/../x"), "can't contain")
    ok(run("links", "disable", "papers"))
    stopped = run("links", "resolve", "papers")
    assert (stopped.out, stopped.code) == ("https://example.com/docs\n", 0)
    assert "disabled" in stopped.err
    answer = json.loads(ok(run("links", "resolve", "papers", "--json")))
    assert (answer["location"], answer["status"], answer["redirect_status"]) == (
        "https://example.com/docs",
        "disabled",
        302,
    )


def test_a_key_with_an_impossible_name_ends_in_a_sentence(run: Run) -> None:
    refused(run("keys", "create", "--name", "n" * 101), "name", "100", code=2)


def test_visibility_and_random_codes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFRACT_CODES", "random")
    made = json.loads(
        ok(run("shorten", "https://example.com/plan", "--visibility", "signed-in", "--json"))
    )
    ok(run("shorten", "https://example.com/other"))

    assert (made["visibility"], len(made["code"])) == ("signed-in", 12)
    assert made["short_url"].endswith(made["code"])
    assert made["code"] in ok(run("links", "show", made["code"]))
    listed = json.loads(ok(run("links", "list", "--visibility", "signed-in", "--json")))
    assert [one["id"] for one in listed["items"]] == [made["id"]]


def test_a_list_never_cuts_off_what_identifies_a_link(run: Run) -> None:
    name, far = (
        "a-name-of-fifty-characters-that-was-cut-off-before",
        "https://example.com/" + "x" * 170,
    )
    ok(run("shorten", far, "--name", name))

    assert name in ok(run("links", "list"))
    assert far in ok(run("links", "list")), "a pipe is not a narrow terminal"


def test_a_qr_code_is_drawn_and_its_looks_are_kept(run: Run, people: None, tmp_path: Path) -> None:
    ok(run("shorten", "https://example.com/", "--name", "plan"))
    file = tmp_path / "plan.png"
    size = ("--format", "png", "--size", "200")
    ok(run("links", "qr", "plan", "--output", str(file), *size, "--color", "#1d4ed8"))
    assert decode(read_pixels(file.read_bytes())) == [link(run, "plan")["short_url"]]
    assert link(run, "plan")["qr_style"] is None
    ok(run("links", "qr", "plan", "--output", str(file), "--shape", "dots", "--logo", "--save"))
    assert link(run, "plan")["qr_style"]["shape"] == "dots"
    assert file.read_bytes().startswith(b"<svg")
    refused(run("links", "qr", "plan", "--color", "#ffd400"), "Choose a darker color", code=2)
