"""`refract import library`, `refract import rollback` and `refract export library`, as a person types them."""

import json
import re
from pathlib import Path

from tests.cli.conftest import Run

SAMPLES = Path(__file__).parents[1] / "samples" / "imports" / "library"


def test_bookmarks_come_once_and_go_again(run: Run, tmp_path: Path) -> None:
    file = str(SAMPLES / "chrome.html")
    tried = run("import", "library", file, "--dry-run")
    assert tried.code == 1
    assert tried.out == "Dry run, nothing was changed. 5 rows: 4 created, 0 already here, 1 refused.\n"
    report = tmp_path / "report.csv"
    first = run("import", "library", file, "--report", str(report))
    assert first.out == "5 rows: 4 created, 0 already here, 1 refused.\n"
    assert "javascript" in report.read_text()
    assert run("import", "library", file).out == "5 rows: 0 created, 4 already here, 1 refused.\n"
    exported = json.loads(run("export", "library").out)
    assert [one["title"] for one in exported["items"]] == ["Bread & butter", "Soup", "From Pinboard", "Quoted otherwise"]

    number = re.search(r"rollback (\d+)", first.err)
    assert number is not None
    assert "is gone" in run("import", "rollback", number[1]).out
    left = json.loads(run("export", "library").out)
    assert (left["items"], left["tags"]) == ([], [])
    assert run("import", "rollback", "12").err == "There is no such import.\n"
    assert run("import", "rollback", "x").code == 2
