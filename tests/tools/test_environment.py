"""Refract in a virtual environment, read from src/ or copied, without a build backend."""

import os
import subprocess
import sys
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
