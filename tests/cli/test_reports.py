"""`refract reports`."""

import json
from pathlib import Path

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.reports import service
from refract.reports.models import ReportReason
from refract.reports.schemas import ReportCreate
from tests import make
from tests.redirect.outside import Outside
from tests.serving import refract


async def _reported(session: WriteSession, rt: Runtime) -> None:
    ada = await make.person(session, rt, "ada")
    await make.link(session, rt, ada, "https://evil.example/login", name="evil")
    new = ReportCreate(target="evil", reason=ReportReason.PHISHING)
    await service.file_report(session, rt, "network", new)


def test_reports_are_listed_and_dismissed(tmp_path: Path) -> None:
    data = str(tmp_path / "data")

    def reports(*words: str) -> tuple[int, str]:
        done = refract("reports", *words, "--data-dir", data)
        return done.returncode, done.stdout + done.stderr

    assert refract("migrate", "--data-dir", data).returncode == 0
    assert reports("list") == (0, "No reports.\n")
    Outside(Path(data)).write(_reported)

    (group,) = json.loads(reports("list", "--json")[1])
    assert (group["name"], group["reasons"]) == ("evil", {"phishing": 1})
    shown = reports("list")[1]
    assert (group["id"] in shown, "https://evil.example/login" in shown) == (
        True,
        True,
    )  # both were cut, and dismiss needs the id
    assert reports("dismiss", group["id"]) == (0, "Dismissed reports of /evil\n")
    assert reports("list") == (0, "No reports.\n")
    assert "dismiss" in reports("list", "--closed")[1]
    assert reports("dismiss", "nonsense") == (1, "Report not found.\n")
