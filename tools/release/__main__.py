"""Build a release of the last commit, twice, and compare. Equal bytes are tagged.

    make release                      version and changes as in pyproject.toml and CHANGELOG.md
    make release ARGS=--dry-run       build and compare only: no tag, no clean tree needed
    make release ARGS="--only wheels" leave out the single file and the Debian package

Everything goes to dist/release: packages, the bill of materials, the notes, and SHA256SUMS.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import sbom
from tools.release import artifacts, debian
from tools.release.version import ReleaseRefused, read_changes, read_version

PARTS = ("wheels", "pyz", "deb")
TARGET = artifacts.ROOT / "dist/release"


def build(commit: str, parts: tuple[str, ...], heading: str, target: Path) -> None:
    """Build the parts of a release into an empty directory."""
    epoch = artifacts.read_commit_time(commit)
    os.environ["SOURCE_DATE_EPOCH"] = epoch
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        tree = work / "tree"
        artifacts.export_tree(commit, tree)
        version = read_version(tree)
        artifacts.build_packages(tree, target)
        (target / "sbom.json").write_text(sbom.render(tree))
        (target / "NOTES.md").write_text(read_changes(tree, heading or version) + "\n")
        if {"pyz", "deb"} & {*parts}:
            compiled = next(file for file in target.glob("*.whl") if "none-any" not in file.name)
            libraries = work / "libraries"
            artifacts.collect_libraries(tree, compiled, libraries)
            if "pyz" in parts:
                tag = compiled.stem.split("-", 2)[2].rsplit("-", 1)
                single = work / f"refract-{version}-{tag[0].split('-')[0]}-{tag[1]}.pyz"
                artifacts.build_single_file(libraries, single, epoch)
                shutil.move(single, target)
            if "deb" in parts:
                root = work / "debian"
                debian.write_package_tree(libraries, tree, version, root)
                name = f"refract_{version.replace('-', '~')}_{debian.get_architecture()}.deb"
                debian.build_debian_package(root, target / name, epoch)


def compute_sums(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(directory.iterdir())
        if file.name != "SHA256SUMS"
    }


def check_tree(version: str) -> None:
    """Refuse to tag what is not committed, or what is tagged already."""
    if _git("status", "--porcelain"):
        raise ReleaseRefused("The working tree has changes. Commit them first.")
    if _git("tag", "--list", f"v{version}"):
        raise ReleaseRefused(
            f"The tag v{version} exists. Raise the version in pyproject.toml for another release."
        )


def release(parts: tuple[str, ...], *, dry_run: bool) -> None:
    """Build twice, compare, write the sums, and tag unless it is a dry run."""
    commit = _git("rev-parse", "HEAD")
    version = read_version(artifacts.ROOT)
    heading = ""
    try:
        read_changes(artifacts.ROOT, version)
    except ReleaseRefused:
        if not dry_run:
            raise
        heading = "Unreleased"
    if not dry_run:
        check_tree(version)
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    build(commit, parts, heading, TARGET)
    with tempfile.TemporaryDirectory() as again:
        build(commit, parts, heading, Path(again))
        first, second = compute_sums(TARGET), compute_sums(Path(again))
    different = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    if different:
        raise ReleaseRefused(f"Built twice, these files differ: {', '.join(different)}.")
    (TARGET / "SHA256SUMS").write_text(
        "".join(f"{digest}  {name}\n" for name, digest in first.items())
    )
    for name in first:
        print(f"{(TARGET / name).stat().st_size / 1_000_000:8.2f} MB  {name}")
    if dry_run:
        print(f"Built twice with equal bytes. Not tagged: --dry-run. See {TARGET}.")
        return
    subprocess.run(
        ["git", "tag", "--annotate", f"v{version}", "--file", str(TARGET / "NOTES.md"), commit],
        cwd=artifacts.ROOT,
        check=True,
    )
    print(f"Built twice with equal bytes, and tagged v{version}. Publish it: git push --tags")


def _git(*words: str) -> str:
    command = ["git", *words]
    return subprocess.run(
        command, cwd=artifacts.ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tools.release")
    parser.add_argument("--dry-run", action="store_true", help="build and compare, tag nothing")
    parser.add_argument(
        "--only", action="append", choices=PARTS, default=None, help="build only these parts"
    )
    given = parser.parse_args()
    try:
        release(tuple(given.only or PARTS), dry_run=given.dry_run)
    except ReleaseRefused as exc:
        print(f"No release: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
