"""Refract in a virtual environment, read from src/ or copied, without a build backend."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import environment


@pytest.mark.parametrize("copy", [False, True])
def test_refract_is_installed_without_a_build_backend(tmp_path: Path, copy: bool) -> None:
    where = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", where], check=True)

    environment.install_refract(where, copy=not copy)
    environment.install_refract(where, copy=copy)  # and once more, the other way

    bare = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ask = [str(where / "bin/python"), "-c", "import refract; print(refract.__file__)"]
    found = Path(
        subprocess.run(
            ask, check=True, capture_output=True, text=True, env=bare, cwd=tmp_path
        ).stdout.strip()
    )
    assert found.is_relative_to(where if copy else environment.SOURCE)
    assert (found.parent / "web/static").is_dir()
    script = (where / "bin/refract").read_text()
    assert script.startswith(f"#!{where}/bin/python\n")
    assert os.access(where / "bin/refract", os.X_OK)


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that only its owner may enter, below ones that all may."""
    with tempfile.TemporaryDirectory() as public:
        Path(public).chmod(0o755)
        private = Path(public, "home")
        private.mkdir(mode=0o700)
        yield private


def test_a_python_that_other_users_cannot_run_is_found(home: Path) -> None:
    python = home / ".pyenv/bin/python3"
    python.parent.mkdir(parents=True)
    python.touch(0o755)
    link = home.parent / "python3"
    link.symlink_to(python)

    assert environment.find_private_directory(link) == home
    home.chmod(0o711)
    assert environment.find_private_directory(link) is None


def test_an_installation_for_a_service_says_which_directory_is_private(home: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--copies", home], check=True)
    where = home.parent / "opt"

    done = subprocess.run(
        [home / "bin/python", "-m", "tools.environment", "--copy", where],
        capture_output=True,
        text=True,
        cwd=environment.SOURCE.parent,
        check=False,
    )

    assert done.returncode == 1
    assert f"lies below {home}, which only its owner may enter" in done.stderr
    assert not where.exists()
