"""Everything that `make proof` and `make bench` list has a description and a `main`."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import bench
import proofs
from tools import catalogue

MODULES = [(folder, name) for folder in (bench, proofs) for name in catalogue.entries(folder)]


@pytest.mark.parametrize(
    ("folder", "name"), MODULES, ids=[f"{folder.__name__}-{name}" for folder, name in MODULES]
)
def test_it_can_be_run(folder: ModuleType, name: str) -> None:
    assert catalogue.entries(folder)[name] != "(no description)"
    place = Path(str(folder.__path__[0]), f"{name.replace('-', '_')}.py")
    mains = [
        one
        for one in ast.parse(place.read_text()).body
        if isinstance(one, ast.FunctionDef) and one.name == "main"
    ]

    assert [len(one.args.args) for one in mains] == [1]


LONG = """
import asyncio

async def wait():
    try:
        print("began", flush=True)
        await asyncio.sleep(60)
    finally:
        print("tidied up", flush=True)

def main(arguments):
    asyncio.run(wait())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_is_broken_off_stops_what_it_started(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "longer"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "long.py").write_text(LONG)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    words = "import longer; from tools import catalogue; catalogue.run(longer, 'long', [])"

    with subprocess.Popen(
        [sys.executable, "-c", words],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        process.send_signal(number)
        rest = process.stdout.read()

    assert rest == "tidied up\n"
    assert process.returncode != 0
