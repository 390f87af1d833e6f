"""Clients of other systems, at the versions that the tests run against this one.

    python -m tools.foreign_clients    install those from npm and from PyPI, pinned in tools/clients

They stand beside the development environment: some need older libraries than Refract.
"""

import fcntl
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import environment, packages

PINNED = Path(__file__).resolve().parent / "clients"
HOME = Path(sys.prefix) / "foreign-clients"
LOCK = "requirements.lock"


def find_modules() -> Path:
    """Return the directory of the packages from npm; install them if necessary."""
    with _install_alone():
        return packages.install_locked(PINNED, HOME / "npm")


def find_python() -> Path:
    """Return the interpreter that has the packages from PyPI; install them if necessary."""
    where = HOME / "python"
    with _install_alone():
        installed, pinned = where / LOCK, PINNED / LOCK
        if not installed.exists() or installed.read_bytes() != pinned.read_bytes():
            shutil.rmtree(where, ignore_errors=True)
            environment.create_environment(where)
            environment.install_dependencies(where, str(pinned.relative_to(PINNED.parents[1])))
            shutil.copyfile(pinned, installed)
    return where / "bin/python"


@contextmanager
def _install_alone() -> Iterator[None]:
    """Hold a lock, since several test processes may need the packages at once."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    print(find_modules(), find_python(), sep="\n")
