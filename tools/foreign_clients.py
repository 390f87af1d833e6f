"""Clients of other systems from npm, at the versions that the tests run against this one.

Those from PyPI are among the development dependencies of pyproject.toml.
"""

import sys
from pathlib import Path

from tools import packages

PINNED = Path(__file__).resolve().parent / "npm_clients"
HOME = Path(sys.prefix) / "foreign-clients"


def find_modules() -> Path:
    """Return the directory of the installed packages; install them if necessary."""
    return packages.install_locked(PINNED, HOME)


if __name__ == "__main__":
    print(find_modules())
