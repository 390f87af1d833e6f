"""`refract admin`."""

import json
from pathlib import Path

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from tests import make
from tests.cli.conftest import Run
from tests.redirect.outside import Outside
from tests.serving import refract


def test_people_from_the_terminal(tmp_path: Path) -> None:
    data = tmp_path / "data"

    def admin(*words: str) -> tuple[int, str]:
        done = refract("admin", *words, "--data-dir", str(data))
        return done.returncode, done.stdout + done.stderr

    assert refract("migrate", "--data-dir", str(data)).returncode == 0
    outside = Outside(data)
    ada = outside.write(lambda session, rt: make.person(session, rt, "ada"))
    assert admin("promote", "ADA@example.com") == (0, "Ada is now an administrator.\n")
    assert admin("suspend", str(ada.id)) == (0, "Ada is suspended; links and lists are on hold.\n")
    code, said = admin("list", "ada@")
    assert (code, "suspended" in said, "admin" in said) == (0, True, True)
    assert admin("restore", "ada@example.com")[0] == 0
    assert admin("demote", "nobody@example.com")[0] == 1
    assert admin("delete", "ada@example.com", "--yes") == (0, "Deleted the account.\n")
    code, said = admin("delete", "ada@example.com", "--yes")
    assert (code, "no active user" in said) == (1, True)
    _, listed = admin("barred")
    assert str(ada.id) in admin("barred", "--json")[1]
    (row,) = [line for line in listed.splitlines() if str(ada.id) in line]
    reference = row.split("│")[1].strip()
    assert admin("allow", "nonsense")[0] == 1
    assert admin("allow", reference) == (0, "They can sign up again.\n")
    assert str(ada.id) not in admin("barred")[1]


def test_no_link_where_a_provider_is_configured(data: Path) -> None:
    work = {
        "REFRACT_ISSUERS__WORK__URL": "https://id.test",
        "REFRACT_ISSUERS__WORK__CLIENT_ID": "refract",
    }
    refused = refract("signin-link", "--data-dir", str(data), **work)
    allowed = refract("signin-link", "--data-dir", str(data), **work, REFRACT_SIGNIN_LINKS="on")

    assert (refused.returncode, "disabled" in refused.stderr) == (1, True)
    assert allowed.stdout.startswith("http://127.0.0.1:8000/auth/sign-in/")


def test_people_and_keys_for_scripts(run: Run, data: Path) -> None:
    """Regression: a pipe truncated ids and emails, at most 200 were listed, and without JSON."""
    Outside(data).write(lambda session, rt: _many_people(session, rt, 205))

    shown = run("admin", "list")
    listed = json.loads(run("admin", "list", "--json").out)["items"]
    some = json.loads(run("admin", "list", "--json", "--limit", "3").out)["items"]
    assert (
        run(
            "keys", "create", "--name", "a rather long name for a key that will be used by a script"
        ).code
        == 0
    )
    keys = json.loads(run("keys", "list", "--json").out)

    assert (len(listed), len(some)) == (205, 3)
    assert all(person["id"] in shown.out and person["email"] in shown.out for person in listed)
    assert "…" not in shown.out
    assert [(key["name"], key["scopes"]) for key in keys] == [
        ("a rather long name for a key that will be used by a script", ["read", "write"])
    ]
    assert keys[0]["id"] in run("keys", "list").out


async def _many_people(session: WriteSession, rt: Runtime, count: int) -> None:
    for number in range(count):
        await make.person(session, rt, f"a-person-with-quite-a-long-name-{number:03}")
