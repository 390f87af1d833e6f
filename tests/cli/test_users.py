"""`refract users`, and sign-in links for invited people."""

import json
from pathlib import Path

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.invitations import service
from refract.identity.models import User
from tests.cli.conftest import Run
from tests.redirect.outside import Outside
from tests.serving import refract


def test_invitations_from_the_terminal(run: Run, data: Path) -> None:
    assert "No invitations yet" in run("users", "invitations").out
    made = run("users", "invite", "--name", "Grace", "--days", "3")
    assert made.code == 0
    assert made.out.startswith("https://go.test/auth/invitation/")
    token = made.out.strip().rsplit("/", 1)[1]
    second = json.loads(run("users", "invite", "--role", "admin", "--json").out)
    assert (second["role"], second["state"]) == ("admin", "pending")

    shown = run("users", "invitations").out
    assert "Grace" in shown
    assert token not in shown
    assert run("users", "revoke", second["id"]).out == "Revoked the invitation.\n"
    again = run("users", "revoke", second["id"])
    assert (again.code, "no open invitation" in again.err) == (1, True)
    assert run("users", "revoke", "nonsense").code == 1
    listed = json.loads(run("users", "invitations", "--json").out)
    assert [row["state"] for row in listed] == ["revoked", "pending"]

    async def accept(session: WriteSession, rt: Runtime) -> User:
        return await service.accept_invitation(session, rt, token, "Grace")

    grace = Outside(data).write(accept)
    link = run("signin-link", "--user", str(grace.id))
    assert (link.code, link.out.startswith("https://go.test/auth/sign-in/")) == (0, True)
    assert run("signin-link", "--user", "1").code == 1


def test_bad_invitations_are_refused(run: Run) -> None:
    wrong = run("users", "invite", "--email", "nonsense")
    assert (wrong.code, "--email is invalid" in wrong.err) == (2, True)
    assert run("users", "invite", "--days", "31").code == 2


def test_no_invitations_where_a_provider_is_configured(data: Path) -> None:
    work = {
        "REFRACT_ISSUERS__WORK__URL": "https://id.test",
        "REFRACT_ISSUERS__WORK__CLIENT_ID": "refract",
    }
    refused = refract("users", "invite", "--data-dir", str(data), **work)
    assert (refused.returncode, "disabled" in refused.stderr) == (1, True)


def test_with_a_mail_server_the_running_server_sends_it(data: Path) -> None:
    mail = {
        "REFRACT_SMTP_URL": "smtp://mail.invalid",
        "REFRACT_MAIL_FROM": "go@example.com",
    }
    words = ("users", "invite", "--email", "grace@example.com", "--data-dir", str(data))
    sent = refract(*words, **mail)
    assert sent.stdout == "The server sends the link to grace@example.com.\n"
    assert "/auth/invitation/" in refract(*words, "--no-email", **mail).stdout
