"""The page of the audit log: actions in words, and who acted."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from httpx import AsyncClient

import refract
from refract.admin.moderation import ReportAction
from refract.admin.pages.audit import AUDIT_LABELS
from refract.admin.pages.audit_details import translate_detail
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.models import User
from refract.identity.revocation_log import ALLOWED_ACTION, DELETED_ACTION
from refract.links.history import LinkChangeAction
from refract.web.i18n import LANGUAGES, use_locale
from tests import make
from tests.client import by_cookie, on_sqlite

SOURCE = Path(refract.__file__).parent
CALLS: dict[str, tuple[str, tuple[int, ...], str]] = {
    "record_event": ("", (2,), ""),
    "add_entry": ("", (1,), ""),
    "record_change": ("list.", (3,), ""),
    "record_export": ("", (1,), ".exported"),
}
"""Functions that record an action: its prefix, the place of its name, its suffix."""


def _literal_actions() -> Iterator[str]:
    """Return every action that the code records by its literal name."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func).rpartition(".")[2]
            prefix, places, suffix = CALLS.get(name, ("", (), ""))
            for argument in (node.args[place] for place in places if len(node.args) > place):
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield f"{prefix}{argument.value}{suffix}"


def test_every_action_has_a_label() -> None:
    literal = set(_literal_actions())
    assert {"signed_in", "list.published", "domain.blocked", "library.exported"} <= literal
    composed = {f"report.{action}" for action in ReportAction}
    composed |= {f"link.{action}" for action in LinkChangeAction} - {"link.created"}
    composed |= {f"{field}.changed" for field in ("status", "role", "plan")}

    assert literal | composed | {ALLOWED_ACTION, DELETED_ACTION} <= AUDIT_LABELS.keys()


@pytest.mark.parametrize(
    ("action", "detail", "german"),
    [
        ("profile.changed", "nickname, time_zone", "Spitzname, Zeitzone"),
        ("role.changed", "admin, by setting", "Administrator, durch Einstellung"),
        ("status.changed", "suspended", "Gesperrt"),
        ("plan.changed", "pro", "Pro"),
        ("signed_in", "one-time link", "Einmal-Link"),
        ("signed_in", "Zitadel", "Zitadel"),
        ("key.created", "command line", "Befehlszeile"),
        ("sessions.ended", "1 by Zitadel, back-channel", "1 Sitzung, durch Zitadel"),
        ("sessions.ended", "2 by Zitadel, back-channel", "2 Sitzungen, durch Zitadel"),
        (
            "credentials.refused",
            "3 attempts: refract_4 from 10.0.0.0/24: 1; no key from elsewhere: 1; others: 1",
            "3 Versuche: refract_4 von 10.0.0.0/24: 1; kein Schlüssel, von anderswo: 1; weitere: 1",
        ),
        ("credentials.refused", "14 attempts", "14 attempts"),
        ("link.edited", "destination, tags", "Ziel, Tags"),
        ("link.owner_added", "owners added 12", "Eigentümer hinzugefügt: 12"),
        ("link.owner_added", "teams added 12", "Team hinzugefügt: 12"),
        ("team.member_added", "manager 12", "Manager: 12"),
        ("team.member_removed", "by group 12", "Durch Gruppe: 12"),
        ("team.member_removed", "12", "12"),
        (
            "link.transferred",
            "owners primary 13, owners removed 12",
            "Neuer Eigentümer: 13, Eigentümer entfernt: 12",
        ),
        ("link.shared", "shares added 12", "Betrachter hinzugefügt: 12"),
        ("link.owner_invited", "owner 12", "Miteigentümer: 12"),
        ("link.disabled", "dangerous (MALWARE)", "Gefährliches Ziel (MALWARE)"),
        ("report.dismiss", "title", "title"),
        ("job.retried", "links.check_safety", "links.check_safety"),
    ],
)
def test_details_are_translated_and_values_stay(action: str, detail: str, german: str) -> None:
    with use_locale(LANGUAGES["de"]):
        assert translate_detail(action, detail) == german


@on_sqlite
async def test_entries_say_what_happened_and_who_did_it(
    client: AsyncClient, rt: Runtime, ada: User, root: User
) -> None:
    async with rt.db.write() as session:
        await audit.record_event(session, rt, "key.created", actor=ada, target="refract_4G7")
        await audit.record_event(session, rt, "unheard.of", detail="14 attempts")
        await audit.record_event(session, rt, "signed_in", detail="one-time link")
        browser = by_cookie(rt, await make.cookie(session, rt, root)) | {"Accept": "text/html"}

    page = (await client.get("/app/admin/audit", headers=browser)).text

    assert "API key created" in page
    assert "<code>key.created</code>" in page
    assert f"By {ada.chosen_name or ada.email}" in page
    assert "<code>unheard.of</code>" in page
    german = await client.get("/app/admin/audit", headers=browser | {"Accept-Language": "de"})
    assert "API-Schlüssel erstellt" in german.text
    assert "Einmal-Link" in german.text


@on_sqlite
async def test_the_log_is_filtered_by_person_and_action(
    rt: Runtime, client: AsyncClient, ada: User, root: User
) -> None:
    async with rt.db.write() as session:
        bob = await make.person(session, rt, "bob")
        await audit.record_event(session, rt, "key.created", actor=ada, target="refract_ada")
        await audit.record_event(session, rt, "key.created", actor=bob, target="refract_bob")
        await audit.record_event(session, rt, "tag.merged", actor=bob, target="merged-by-bob")
        browser = by_cookie(rt, await make.cookie(session, rt, root)) | {"Accept": "text/html"}

    async def find(**filters: str) -> set[str]:
        page = await client.get("/app/admin/audit", headers=browser, params=filters)
        assert page.status_code == 200
        known = ("refract_ada", "refract_bob", "merged-by-bob")
        return {target for target in known if target in page.text}

    assert await find() == {"refract_ada", "refract_bob", "merged-by-bob"}
    assert await find(person=bob.email or "") == {"refract_bob", "merged-by-bob"}
    assert await find(person=str(ada.id)) == {"refract_ada"}
    assert await find(person=str(bob.id), action="key.created") == {"refract_bob"}
    assert await find(person="nobody@example.com") == set()
