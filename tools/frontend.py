"""Lint and format scripts and stylesheets (Biome), and lint templates (djLint).

    python -m tools.frontend check     report problems
    python -m tools.frontend format    format scripts and stylesheets, then check

Biome is pinned by hash in tools/biome, djLint in requirements-dev.lock.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from tools import packages

ROOT = Path(__file__).resolve().parents[1]
PINNED = ROOT / "tools/biome"
HOME = Path(sys.prefix) / "biome"
PLATFORMS = {"x86_64": "cli-linux-x64", "aarch64": "cli-linux-arm64"}


class BiomeNotInstalled(Exception):
    """Biome is not installed and cannot be installed here."""


def find_biome() -> Path:
    """Return the program that tools/biome/package-lock.json pins; install it if necessary."""
    name = PLATFORMS.get(platform.machine()) if sys.platform == "linux" else None
    if name is None:
        raise BiomeNotInstalled(f"no Biome is pinned for {sys.platform} on {platform.machine()}")
    try:
        modules = packages.install_locked(PINNED, HOME)
    except packages.NpmFailed as exc:
        raise BiomeNotInstalled(str(exc)) from exc
    return modules / "@biomejs" / name / "biome"


def run_biome(*arguments: str) -> bool:
    """Run Biome on the files that biome.jsonc names; return whether it found nothing.

    A missing Biome is reported, and fails the check only in CI.
    """
    try:
        program = find_biome()
    except BiomeNotInstalled as exc:
        print(f"Scripts and stylesheets are not checked: {exc}", file=sys.stderr)
        return not os.environ.get("CI")
    command = [str(program), "check", "--error-on-warnings", *arguments]
    return subprocess.run(command, check=False, cwd=ROOT).returncode == 0


def lint_templates() -> bool:
    """Run djLint on every folder of templates; return whether it found nothing."""
    folders = [path for path in (ROOT / "src").rglob("templates") if path.is_dir()]
    names = sorted(str(path.relative_to(ROOT)) for path in folders)
    command = [sys.executable, "-m", "djlint", "--lint", "--quiet", *names]
    return subprocess.run(command, check=False, cwd=ROOT).returncode == 0


def main(arguments: list[str]) -> int:
    if arguments not in (["check"], ["format"]):
        print(__doc__, file=sys.stderr)
        return 2
    results = [run_biome(*(["--write"] if arguments == ["format"] else [])), lint_templates()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
