"""The program in a directory that the interpreter does not know, as in a single file."""

import os
import sys
import sysconfig
from pathlib import Path

import httpx
import pytest

import refract
from refract.core.import_path import format_import_path
from tests.serving import serving

_PROGRAM = "import sys; sys.path.insert(0, {!r}); from refract.cli import main; main()"


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A directory with the program and its libraries."""
    directory = tmp_path / "unpacked"
    directory.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.suffix != ".pth" and not entry.name.startswith("refract"):
            (directory / entry.name).symlink_to(entry)
    (directory / "refract").symlink_to(Path(refract.__file__).parent)
    return directory


def test_processes_of_the_server_find_the_program(tmp_path: Path, unpacked: Path) -> None:
    interpreter = os.path.realpath(sys.executable)  # has no libraries: those are of the environment
    with serving(
        tmp_path / "data",
        program=[interpreter, "-P", "-c", _PROGRAM.format(str(unpacked))],
        PYTHONPATH="",
        REFRACT_BACKGROUND="process",
        REFRACT_WORKERS="2",
    ) as served:
        assert httpx.get(f"{served.url}/health", trust_env=False).status_code == 200
        assert len(served.children) == 2
        assert served.redirecting is not None


def test_given_directories_follow_and_none_appears_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    own = str(Path(refract.__file__).parents[1])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert format_import_path() == own
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/one", own, "", "/two", "/one"]))
    assert format_import_path() == os.pathsep.join([own, "/one", "/two"])
