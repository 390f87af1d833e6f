"""The Debian package: libraries and program in /opt/refract, units for systemd, and a user.

Made with dpkg-deb alone. It needs the distribution's python3, in the version that the compiled
libraries are for.
"""

import os
import platform
import shutil
import sys
import textwrap
from pathlib import Path

from tools.release.artifacts import run
from tools.release.version import ReleaseRefused

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_COMMAND = """\
#!/usr/bin/python3 -P
import sys

sys.path.insert(0, "/opt/refract/lib")
from refract.cli import main

sys.exit(main())
"""
_SETTINGS = """\
# Settings of Refract, one NAME=value in each line: see `refract settings` for all of them.
# Afterwards: systemctl restart refract
# REFRACT_BASE_URL=https://go.example.com
# REFRACT_DATABASE_URL=postgresql://refract:…@localhost/refract
"""
_AFTER_INSTALLATION = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
  getent passwd refract >/dev/null || useradd --system --user-group --no-create-home \\
    --home-dir /var/lib/refract --shell /usr/sbin/nologin refract
  chgrp refract /etc/refract/refract.env
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # A running service gets the new code process by process; no request fails.
    if systemctl is-active --quiet refract; then systemctl reload refract; fi
  fi
fi
"""
_BEFORE_REMOVAL = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now refract.service refract-backup.timer
fi
find /opt/refract -name __pycache__ -type d -prune -exec rm -rf {} +
"""
_AFTER_REMOVAL = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
if [ "$1" = purge ]; then
  echo "Your links are kept: remove /var/lib/refract if you no longer need them." >&2
fi
"""


def get_architecture() -> str:
    """Return Debian's name of this machine's architecture."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise ReleaseRefused(f"No Debian package is made for {machine}.")
    return _ARCHITECTURES[machine]


def write_package_tree(libraries: Path, tree: Path, version: str, root: Path) -> None:
    """Write what the package holds into a directory, as dpkg-deb takes it."""
    shutil.copytree(libraries, root / "opt/refract/lib")
    _write(root / "opt/refract/bin/refract", _COMMAND, 0o755)
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/refract").symlink_to("/opt/refract/bin/refract")
    units = root / "lib/systemd/system"
    units.mkdir(parents=True)
    for unit in sorted((tree / "deploy/systemd").iterdir()):
        shutil.copyfile(unit, units / unit.name)
    _write(root / "etc/refract/refract.env", _SETTINGS, 0o640)
    _write(root / "usr/share/doc/refract/copyright", (tree / "LICENSE").read_text(), 0o644)
    control = root / "DEBIAN"
    _write(control / "control", _describe(libraries, version), 0o644)
    _write(control / "conffiles", "/etc/refract/refract.env\n", 0o644)
    _write(control / "postinst", _AFTER_INSTALLATION, 0o755)
    _write(control / "prerm", _BEFORE_REMOVAL, 0o755)
    _write(control / "postrm", _AFTER_REMOVAL, 0o755)


def build_debian_package(root: Path, target: Path, epoch: str) -> None:
    """Pack the directory. Its modes are set first: they depend on who wrote it."""
    if shutil.which("dpkg-deb") is None:
        raise ReleaseRefused(
            "A Debian package needs dpkg-deb, which is part of Debian and Ubuntu. Build on one of"
            " them, or name the other parts with --only."
        )
    for directory, _, files in os.walk(root):
        Path(directory).chmod(0o755)
        for name in files:
            file = Path(directory, name)
            if not file.is_symlink() and file.name != "refract.env":
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
    # Gzip: what xz writes depends on the number of cores.
    command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z9", "--build"]
    run([*command, str(root), str(target)], target.parent, {"SOURCE_DATE_EPOCH": epoch})


def _describe(libraries: Path, version: str) -> str:
    size = sum(file.stat().st_size for file in libraries.rglob("*") if file.is_file()) // 1024
    this, following = sys.version_info.minor, sys.version_info.minor + 1
    return textwrap.dedent(
        f"""\
        Package: refract
        Version: {version.replace("-", "~")}
        Architecture: {get_architecture()}
        Maintainer: The Refract project <security@refract.example>
        Installed-Size: {size}
        Depends: python3 (>= 3.{this}~), python3 (<< 3.{following}~), passwd
        Section: web
        Priority: optional
        Description: one self-hosted home for every link
         Shortens and names links, redirects them, counts clicks, publishes lists
         and keeps a library. Start it with: systemctl enable --now refract
        """
    )


def _write(file: Path, text: str, mode: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
