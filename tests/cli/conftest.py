"""Commands in this process: a process of its own for each would cost seconds."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from refract import cli


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command said, and how it ended."""

    out: str
    err: str
    code: int


Run = Callable[..., Ran]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def run(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the test's own data directory, or on another."""

    def command(*arguments: str | Path, into: Path = data) -> Ran:
        monkeypatch.setenv("REFRACT_DATA_DIR", str(into))
        monkeypatch.setenv("REFRACT_BASE_URL", "https://go.test")
        monkeypatch.setattr(sys, "argv", ["refract", *map(str, arguments)])
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        said = capsys.readouterr()
        return Ran(said.out, said.err, code)

    return command
