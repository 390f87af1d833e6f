"""Clients of other systems, at the versions that the tests run against this one.

    python -m tools.foreign_clients    install those from npm and from PyPI, pinned in tools/clients

They stand beside the development environment: some need older libraries than Refract.
"""

import fcntl
import sys
from pathlib import Path

from tools import environment, packages

PINNED = Path(__file__).resolve().parent / "clients"
HOME = Path(sys.prefix) / "foreign-clients"


def find_modules() -> Path:
    """Return the directory of the packages from npm; install them if necessary."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may need them at once
        return packages.install_locked(PINNED, HOME / "npm")


def find_python() -> Path:
    """Return the interpreter that has the packages from PyPI; install them if necessary."""
    return environment.provide_environment(HOME / "python", PINNED / "requirements.lock")


if __name__ == "__main__":
    print(find_modules(), find_python(), sep="\n")
