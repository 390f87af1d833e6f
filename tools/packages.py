"""Programs we use but do not ship: where they are, and which Debian package brings each."""

from __future__ import (
    annotations,
)  # an old python3 must get as far as being told that it is too old

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

DEBIAN = {
    "postgresql": "postgresql",
    "mysql": "mariadb-server",
    "redis": "redis-server",
    "chromium": "chromium",
    "nginx": "nginx-light",
    "caddy": "caddy",
    "wrk": "wrk",
    "node": "nodejs",
    "npm": "npm",
    "oidc": "npm",
}

# Debian keeps the PostgreSQL server off the PATH, one directory for each version.
_POSTGRESQL_HOME = Path("/usr/lib/postgresql")
_SERVER_PATH = os.pathsep.join(
    [os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"]
)


def program(*names: str) -> str | None:
    """The first of these programs that is installed.

    /usr/sbin counts, though an ordinary user's PATH leaves it out.
    """
    found = (shutil.which(name, path=_SERVER_PATH) for name in names)
    return next((path for path in found if path), None)


def postgresql_bin() -> Path | None:
    """The directory of `initdb` and `postgres`, newest version first."""
    homes = [home for home in _POSTGRESQL_HOME.glob("*") if home.name.isdigit()]
    for home in sorted(homes, key=lambda home: -int(home.name)):
        if (home / "bin/initdb").exists() and (home / "bin/postgres").exists():
            return home / "bin"
    initdb = program("initdb")
    if initdb is None:
        return None
    real = Path(initdb).resolve().parent
    return real if (real / "postgres").exists() else None


def find(name: str) -> str | None:
    """Where a program of `DEBIAN` is (for a database: its server program), or None."""
    if name == "postgresql":
        directory = postgresql_bin()
        return str(directory / "postgres") if directory else None
    if name == "mysql":
        server = program("mariadbd")
        return server if server and program("mariadb-install-db") else None
    if name == "oidc":
        node = find("node")
        return node if node and program("npm") else None
    spellings = {
        "redis": ("redis-server",),
        "chromium": ("chromium", "chromium-browser"),
        "node": ("node", "nodejs"),
    }
    return program(*spellings.get(name, (name,)))


def may_install() -> bool:
    """Return whether this is root with apt-get. Installing by sudo would be a surprise."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(packages: Iterable[str]) -> bool:
    """Install Debian packages; False (and apt's own words on standard error) when that fails."""
    wanted = sorted(packages)
    print(f"Installing {' '.join(wanted)} …", file=sys.stderr, flush=True)
    # RUNLEVEL=1 keeps the packages from starting system services: we start private ones.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=120"]
    install = [*apt, "install", "-y", "--no-install-recommends", *wanted]
    for command in ([*apt, "update"], install):
        done = subprocess.run(
            command,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != 0:
            print(
                f"{' '.join(command)} failed:\n{done.stdout[-2000:]}", file=sys.stderr, flush=True
            )
            # A stale mirror must not stop an install that the local package lists can serve.
            if command is install:
                return False
    return True


def ensure(names: Iterable[str]) -> dict[str, str]:
    """The programs found, by name; those missing are installed where we may, and absent from the
    answer where not.
    """
    names = list(names)
    missing = [name for name in names if find(name) is None]
    if missing and may_install():
        apt_install(DEBIAN[name] for name in missing)
    found = {name: find(name) for name in names}
    return {name: path for name, path in found.items() if path}


class NpmFailed(Exception):
    """Packages of npm are not installed, and cannot be installed here."""


def install_locked(pinned: Path, home: Path) -> Path:
    """Install what a package-lock.json pins by hash, if necessary; return its node_modules."""
    lock = home / "package-lock.json"
    if lock.exists() and lock.read_bytes() == (pinned / lock.name).read_bytes():
        return home / "node_modules"
    npm = ensure(["npm"]).get("npm")
    if npm is None:
        raise NpmFailed("npm is not installed (Debian, Ubuntu: apt-get install npm)")
    home.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copyfile(pinned / file, home / file)
    # A fetched package must have the hash in the lock, and runs no script of its own.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    print(f"Installing {home.name} …", file=sys.stderr, flush=True)
    done = subprocess.run(
        [npm, "ci", *options, "--loglevel=error"],
        check=False,
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        lock.unlink(missing_ok=True)
        raise NpmFailed(f"npm ci failed:\n{done.stderr[-2000:]}")
    return home / "node_modules"
