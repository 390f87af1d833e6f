"""Compiled modules are built where that is possible, and nothing fails where it is not."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import environment, extension

PACKAGE_FILES = ("pyproject.toml", "README.md", "LICENSE", ".gitignore")
INCLUDED_SOURCE = "clicks/spool/_crc32.pxi"
NO_COMPILER = {"PATH": "/no/such/directory", "CC": "no-such-compiler"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with nothing but the sources of compiled modules."""
    for name in (*extension.SOURCES, INCLUDED_SOURCE):
        source = tmp_path / "refract" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(extension.PACKAGE / name, source)
    return tmp_path / "refract"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what a wheel is built from, with nothing compiled."""
    where = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "node_modules")
    for name in ("src", "tools"):
        shutil.copytree(extension.ROOT / name, where / name, ignore=ignored)
    for name in PACKAGE_FILES:
        shutil.copy(extension.ROOT / name, where / name)
    return where


@pytest.mark.parametrize("changed", [*extension.SOURCES, INCLUDED_SOURCE])
def test_modules_are_compiled_once_per_source(package: Path, changed: str) -> None:
    built = extension.build_modules(package)
    first = [path.stat().st_mtime_ns for path in built.values()]

    assert extension.is_current(package)
    again = extension.build_modules(package).values()
    assert [path.stat().st_mtime_ns for path in again] == first
    source = package / changed
    source.write_text(source.read_text() + "\n# changed\n")
    assert not extension.is_current(package)
    sources = [package / name for name in (*extension.SOURCES, INCLUDED_SOURCE)]
    files = {path for path in package.rglob("*") if path.is_file()}
    assert files == {*built.values(), *sources}


def test_without_a_compiler_one_line_says_so(package: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.extension", "--into", package],
        env={**os.environ, **NO_COMPILER},
        cwd=extension.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr == (
        "Fast lane and ingest are not compiled, because there is no C compiler"
        " (no-such-compiler). Both work in Python, for more CPU.\n"
    )
    assert list(package.rglob("*.so")) == []


def test_a_source_that_does_not_compile_is_reported_and_leaves_nothing(package: Path) -> None:
    for name in extension.SOURCES:
        (package / name).write_text("cdef nonsense(\n")

    with pytest.raises(extension.NotCompiled, match="failed"):
        extension.build_modules(package)
    assert list(package.rglob("*.so")) == []


def test_an_installed_copy_takes_nothing_compiled_from_the_checkout(tmp_path: Path) -> None:
    where = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", where], check=True)

    package = environment.install_refract(where, copy=True)

    assert list(package.rglob("*.so")) == []
    assert all((package / name).exists() for name in (*extension.SOURCES, INCLUDED_SOURCE))


@pytest.mark.parametrize("compiles", [True, False])
def test_a_wheel_holds_compiled_modules_where_they_can_be_compiled(
    project: Path, compiles: bool
) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        env={**os.environ, **({} if compiles else NO_COMPILER)},
        cwd=project,
        capture_output=True,
        check=True,
    )

    (wheel,) = (project / "dist").iterdir()
    names = zipfile.ZipFile(wheel).namelist()
    targets = [extension.get_target(Path("refract"), name) for name in extension.SOURCES]
    assert {target.as_posix() in names for target in targets} == {compiles}
    assert wheel.name.endswith("-py3-none-any.whl") is not compiles
    assert {f"refract/{name}" for name in (*extension.SOURCES, INCLUDED_SOURCE)} <= set(names)
