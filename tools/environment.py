"""Virtual environments: locked dependencies, checked by hash, and Refract itself.

    python3 -m tools.environment .venv                 run time, from requirements.lock and src/
    python3 -m tools.environment --dev .venv           and tools, from requirements-dev.lock
    python3 -m tools.environment --copy /opt/refract   run time with a copy of Refract

Safe to run again. Written so that an old python3 can still read it and say what is wrong.
"""

from __future__ import annotations

import argparse
import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tools import packages

MIN_PYTHON = (3, 11)
RUNTIME_LOCK = "requirements.lock"
DEVELOPMENT_LOCK = "requirements-dev.lock"
SOURCE = Path(__file__).resolve().parents[1] / "src"
SCRIPT = """#!{python}
import sys

from refract.cli import main

sys.exit(main())
"""


def create_environment(where: Path) -> None:
    """Make a virtual environment with pip, installing Debian's separate package for it if that is
    missing.
    """
    make = [sys.executable, "-m", "venv", str(where)]
    if _try(make):
        return
    shutil.rmtree(where, ignore_errors=True)  # a half-made environment would look like a whole one
    if packages.may_install() and packages.apt_install(["python3-venv"]) and _try(make):
        return
    shutil.rmtree(where, ignore_errors=True)
    sys.exit(
        "python3 -m venv does not work here: install the package python3-venv (Debian, Ubuntu),"
        " then try again."
    )


def _try(command: list[str]) -> bool:
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
    return done.returncode == 0


def install_dependencies(where: Path, lock: str) -> None:
    """Install a lock.

    It is complete (tests/tools/test_locks.py), so nothing is resolved again, and nothing unpinned
    is fetched.
    """
    pip = [
        str(where / "bin/python"),
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "install",
    ]
    print("Installing the locked dependencies …", file=sys.stderr, flush=True)
    subprocess.run(
        [*pip, "--no-deps", "--require-hashes", "-r", str(SOURCE.parent / lock)], check=True
    )


def provide_environment(where: Path, lock: Path) -> Path:
    """Return the interpreter of an environment with a lock of this repository.

    Created, or renewed after the lock has changed. For tools whose libraries differ from ours.
    """
    where.parent.mkdir(parents=True, exist_ok=True)
    with where.with_name(f".{where.name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # several test processes may need it at once
        installed = where / "requirements.lock"
        if not installed.exists() or installed.read_bytes() != lock.read_bytes():
            shutil.rmtree(where, ignore_errors=True)
            create_environment(where)
            install_dependencies(where, str(lock.relative_to(SOURCE.parent)))
            shutil.copyfile(lock, installed)
    return where / "bin/python"


def install_refract(where: Path, *, copy: bool) -> Path:
    """Put the package on the path and write bin/refract, which is all that a build backend would
    do. Return the directory of the package.
    """
    python = (where / "bin/python").absolute()
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    library = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    shutil.rmtree(library / "refract", ignore_errors=True)
    (library / "refract.pth").unlink(missing_ok=True)
    if copy:
        # What was compiled in the checkout may be for another machine.
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(SOURCE / "refract", library / "refract", ignore=ignored)
    else:
        (library / "refract.pth").write_text(f"{SOURCE}\n")
    script = where / "bin/refract"
    script.write_text(SCRIPT.format(python=python))
    script.chmod(0o755)
    return library / "refract" if copy else SOURCE / "refract"


def compile_modules(where: Path, package: Path, *, install_compiler: bool) -> None:
    """Compile fast lane and ingest if that is possible here; Refract runs without.

    For development a missing compiler is installed if that is allowed, since tests need both
    implementations.
    """
    build = [str((where / "bin/python").absolute()), "-m", "tools.extension", "--into"]
    command = [*build, str(package.absolute())]
    if subprocess.run(command, check=False, cwd=SOURCE.parent).returncode == 0:
        return
    if (
        install_compiler
        and packages.may_install()
        and packages.apt_install(["gcc", "libc6-dev", "python3-dev"])
    ):
        subprocess.run(command, check=False, cwd=SOURCE.parent)


def find_private_directory(python: Path) -> Path | None:
    """Return the directory that keeps other users from running a Python, or None."""
    above = reversed(python.resolve().parents)
    return next((directory for directory in above if not directory.stat().st_mode & 0o001), None)


def main() -> None:
    if sys.version_info < MIN_PYTHON:
        found = ".".join(str(part) for part in sys.version_info[:3])
        sys.exit(
            f"Refract needs Python 3.11 or newer; python3 is {found}. Name another one with: make"
            " PYTHON=/path/to/python3.12 …"
        )
    parser = argparse.ArgumentParser(prog="python3 -m tools.environment")
    parser.add_argument("where", type=Path, nargs="?", default=Path(".venv"))
    parser.add_argument("--dev", action="store_true", help="install the development tools too")
    parser.add_argument(
        "--copy", action="store_true", help="copy Refract instead of reading it from src/"
    )
    given = parser.parse_args()
    private = find_private_directory(Path(sys.executable)) if given.copy else None
    if private is not None:
        sys.exit(
            f"The service's user could not run this Python: it lies below {private}, which only"
            " its owner may enter. Use one that all may run: /usr/bin/python3 -m tools.environment"
            f" --copy {given.where}"
        )
    if not (given.where / "bin/pip").exists():
        create_environment(given.where)
    try:
        install_dependencies(given.where, DEVELOPMENT_LOCK if given.dev else RUNTIME_LOCK)
    except subprocess.CalledProcessError as exc:
        sys.exit(exc.returncode)
    package = install_refract(given.where, copy=given.copy)
    compile_modules(given.where, package, install_compiler=given.dev)


if __name__ == "__main__":
    main()
