"""Fixtures that run commands in this process, which saves the start of a process for each."""

import asyncio
import gc
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from refract import cli
from tests.conftest import prepare_template


@dataclass(frozen=True, slots=True)
class Ran:
    """The output and the exit code of a command."""

    out: str
    err: str
    code: int


Run = Callable[..., Ran]


@pytest.fixture
def data(tmp_path: Path, scratch: Path) -> Path:
    """A data directory with an empty installation."""
    asyncio.run(prepare_template("sqlite", scratch))
    made = tmp_path / "data"
    made.mkdir(mode=0o700)
    shutil.copyfile(scratch / "template.db", made / "refract.db")
    return made


@pytest.fixture
def run(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on the test's own data directory, or on another."""

    def command(*arguments: str | Path, into: Path = data) -> Ran:
        monkeypatch.setenv("REFRACT_DATA_DIR", str(into))
        monkeypatch.setenv("REFRACT_BASE_URL", "https://go.test")
        monkeypatch.setattr(sys, "argv", ["refract", *map(str, arguments)])
        capsys.readouterr()
        mask = os.umask(0o022)
        try:
            cli.main()
            code = 0
        except SystemExit as exc:
            code = exc.code if isinstance(exc.code, int) else 0 if exc.code is None else 1
        finally:
            os.umask(mask)
            gc.unfreeze()  # a command freezes what is loaded
        said = capsys.readouterr()
        return Ran(said.out, said.err, code)

    return command
