"""The compiled lane is built where that is possible, and nothing fails where it is not."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import environment, extension

PACKAGE_FILES = ("pyproject.toml", "README.md", "LICENSE", ".gitignore")
NO_COMPILER = {"PATH": "/no/such/directory", "CC": "no-such-compiler"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with nothing but the source of the lane."""
    source = tmp_path / "refract" / extension.SOURCE_NAME
    source.parent.mkdir(parents=True)
    shutil.copy(extension.PACKAGE / extension.SOURCE_NAME, source)
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


def test_the_lane_is_compiled_once_per_source(package: Path) -> None:
    built = extension.build_lane(package)
    first = built.stat().st_mtime_ns

    assert extension.is_current(package)
    assert extension.build_lane(package).stat().st_mtime_ns == first
    source = package / extension.SOURCE_NAME
    source.write_text(source.read_text() + "\n# changed\n")
    assert not extension.is_current(package)
    assert [path.name for path in built.parent.iterdir() if path not in (built, source)] == []


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
        "The fast lane is not compiled, because there is no C compiler (no-such-compiler)."
        " Redirects work without it, for more CPU.\n"
    )
    assert not extension.get_target(package).exists()


def test_a_source_that_does_not_compile_is_reported_and_leaves_nothing(package: Path) -> None:
    (package / extension.SOURCE_NAME).write_text("cdef nonsense(\n")

    with pytest.raises(extension.NotCompiled, match="failed"):
        extension.build_lane(package)
    assert not extension.get_target(package).exists()


def test_an_installed_copy_takes_nothing_compiled_from_the_checkout(tmp_path: Path) -> None:
    where = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", where], check=True)

    package = environment.install_refract(where, copy=True)

    assert list(package.rglob("*.so")) == []
    assert (package / extension.SOURCE_NAME).exists()


@pytest.mark.parametrize("compiles", [True, False])
def test_a_wheel_holds_the_compiled_lane_where_it_can_be_compiled(
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
    compiled = f"refract/redirect/{extension.get_target(extension.PACKAGE).name}"
    assert (compiled in names) is compiles
    assert wheel.name.endswith("-py3-none-any.whl") is not compiles
    assert {"refract/redirect/lane.py", "refract/redirect/_lane.pyx"} <= set(names)
