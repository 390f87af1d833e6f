"""The page about moving, followed literally: its commands run in a clean directory."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run, data, run
from tests.library.imports.test_formats import SAMPLES as BOOKMARKS

__all__ = ["data", "run"]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "move.md"
LINKS = ROOT / "tests" / "samples" / "imports"
FILES = {
    "Shlink": LINKS / "shlink_api.json",
    "YOURLS": LINKS / "yourls_dump.sql",
    "Kutt": LINKS / "kutt_api.json",
    "golink": LINKS / "golink_export.jsonl",
    "Dub": LINKS / "dub_links.csv",
    "Bitly": LINKS / "bitly_links.csv",
    "linkding": BOOKMARKS / "linkding.json",
    "Karakeep": BOOKMARKS / "karakeep.json",
}


def read_commands(system: str) -> list[list[str]]:
    """Return the commands of Refract in the section of a system."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {system}\n")[1].split("\n## ")[0]
    block = section.split("```sh\n")[1].split("```")[0]
    return [line.split()[1:] for line in block.splitlines() if line.startswith("refract ")]


@pytest.mark.parametrize("system", FILES)
def test_the_commands_of_each_section_move_what_is_in_the_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = read_commands(system)
    shutil.copyfile(FILES[system], tmp_path / commands[0][2])

    dry, done, listed = (run(*words) for words in commands)

    assert "Dry run, nothing was changed." in dry.out
    assert {dry.code, done.code} <= {0, 1}
    assert dry.out.split("changed. ")[1] == done.out
    assert " 0 created" not in done.out
    assert " 0 imported" not in done.out
    assert "done" in listed.out
