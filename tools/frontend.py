"""Lint and format scripts and stylesheets (Biome), and lint templates (djLint).

    python -m tools.frontend check     report problems
    python -m tools.frontend format    format scripts and stylesheets, then check

Biome is pinned by hash in tools/biome, djLint in requirements-dev.lock.
"""

from __future__ import annotations

import os
import platform
import shutil
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
    program, lock = HOME / "node_modules/@biomejs" / name / "biome", "package-lock.json"
    installed, pinned = HOME / lock, PINNED / lock
    if (
        not program.exists()
        or not installed.exists()
        or installed.read_bytes() != pinned.read_bytes()
    ):
        _install_biome()
    return program


def _install_biome() -> None:
    npm = packages.ensure(["npm"]).get("npm")
    if npm is None:
        raise BiomeNotInstalled("npm is not installed (Debian, Ubuntu: apt-get install npm)")
    HOME.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copyfile(PINNED / file, HOME / file)
    # A fetched package must have the hash in the lock, and runs no script of its own.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    print("Installing Biome …", file=sys.stderr, flush=True)
    done = subprocess.run(
        [npm, "ci", *options, "--loglevel=error"],
        check=False,
        cwd=HOME,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        (HOME / "package-lock.json").unlink(missing_ok=True)
        raise BiomeNotInstalled(f"npm ci failed:\n{done.stderr[-2000:]}")


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
