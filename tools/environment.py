"""Make .venv: the locked dependencies, checked by hash, and Refract itself in editable form.

`python3 -m tools.environment .venv`. Safe to run again. Written so that an old python3 can still read it and say what is wrong.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools import packages

OLDEST = (3, 11)


def create(where: Path) -> None:
    """A virtual environment with pip, getting Debian's separate package for it if that is what is missing."""
    make = [sys.executable, "-m", "venv", str(where)]
    if _try(make):
        return
    shutil.rmtree(where, ignore_errors=True)  # a half-made environment would look like a whole one
    if packages.may_install() and packages.apt_install(["python3-venv"]) and _try(make):
        return
    shutil.rmtree(where, ignore_errors=True)
    sys.exit("python3 -m venv does not work here: install the package python3-venv (Debian, Ubuntu), then try again.")


def _try(command: list[str]) -> bool:
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
    return done.returncode == 0


def install(where: Path) -> None:
    """Everything comes from requirements.lock, the build backend too, so nothing unpinned is ever fetched."""
    pip = [str(where / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    print("Installing the locked dependencies …", file=sys.stderr, flush=True)
    subprocess.run([*pip, "--require-hashes", "-r", "requirements.lock"], check=True)
    subprocess.run([*pip, "--no-build-isolation", "--no-deps", "--editable", "."], check=True)


def main() -> None:
    if sys.version_info < OLDEST:
        found = ".".join(str(part) for part in sys.version_info[:3])
        sys.exit(f"Refract needs Python 3.11 or newer; python3 is {found}. Name another one with: make PYTHON=/path/to/python3.12 …")
    where = Path(sys.argv[1] if len(sys.argv) > 1 else ".venv")
    if not (where / "bin/pip").exists():
        create(where)
    try:
        install(where)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)


if __name__ == "__main__":
    main()
