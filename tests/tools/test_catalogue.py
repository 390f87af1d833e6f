"""Whatever `make proof` and `make bench` list can be run: each has a description, and a `main` that takes the words after its name."""

import ast
from pathlib import Path
from types import ModuleType

import pytest

import bench
import proofs
from tools import catalogue

MODULES = [(folder, name) for folder in (bench, proofs) for name in catalogue.entries(folder)]


@pytest.mark.parametrize(("folder", "name"), MODULES, ids=[f"{folder.__name__}-{name}" for folder, name in MODULES])
def test_it_can_be_run(folder: ModuleType, name: str) -> None:
    assert catalogue.entries(folder)[name] != "(no description)"
    place = Path(str(folder.__path__[0]), f"{name.replace('-', '_')}.py")
    mains = [one for one in ast.parse(place.read_text()).body if isinstance(one, ast.FunctionDef) and one.name == "main"]

    assert [len(one.args.args) for one in mains] == [1]
