"""The files of a release. Built from a tree of files alone, so the same tree gives equal bytes."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tools import environment

ROOT = Path(__file__).resolve().parents[2]
SHIV_ENVIRONMENT = Path(sys.prefix) / "shiv"
SHIV_LOCK = Path(__file__).with_name("requirements.lock")
_PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


def run(command: list[str], directory: Path, variables: Mapping[str, str] | None = None) -> None:
    """Run a command, with its output on our standard error."""
    subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **(variables or {})},
        stdout=sys.stderr,
        check=True,
    )


def export_tree(commit: str, directory: Path) -> None:
    """Write the files of a commit: nothing that only lies in the working tree is released."""
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")


def read_commit_time(commit: str) -> str:
    """Return when a commit was made: the time of every file in a release."""
    command = ["git", "log", "-1", "--format=%ct", commit]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def build_packages(tree: Path, directory: Path) -> None:
    """Build the compiled wheel for this Python and machine, the pure one and the source package."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(directory)]
    run([*build, "-t", "wheel"], tree)
    for built in (tree / "src").rglob("*.so"):
        built.unlink()
    run([*build, "-t", "sdist"], tree)
    run([*build, "-t", "wheel"], tree, {"REFRACT_PURE_WHEEL": "1"})


def collect_libraries(tree: Path, wheel: Path, directory: Path) -> None:
    """Unpack a wheel of Refract and its locked dependencies into one directory.

    Unpacked instead of installed: an installer would write paths of this machine.
    """
    wheels = directory.with_name(f"{directory.name}-wheels")
    download = [sys.executable, *_PIP, "download", "--no-deps", "--require-hashes"]
    run(
        [*download, "--only-binary", ":all:", "-d", str(wheels), "-r", "requirements.lock"],
        tree,
    )
    for file in sorted([*wheels.iterdir(), wheel]):
        unpack_wheel(file, directory)
    shutil.rmtree(wheels)


def unpack_wheel(wheel: Path, directory: Path) -> None:
    """Unpack a wheel: what is imported, and what says which version it is."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            first, _, rest = member.filename.partition("/")
            if first.endswith(".data"):  # scripts and headers, but for libraries
                kind, _, member.filename = rest.partition("/")
                if kind not in ("purelib", "platlib"):
                    continue
            archive.extract(member, directory)


def build_single_file(libraries: Path, target: Path, epoch: str) -> None:
    """Pack libraries into one file that python3 runs, and which unpacks itself when it starts."""
    python = environment.provide_environment(SHIV_ENVIRONMENT, SHIV_LOCK)
    shiv = str(python.with_name("shiv"))
    pack = [shiv, "--reproducible", "--site-packages", str(libraries)]
    # -P: nothing is imported from the directory in which somebody starts it.
    interpreter = f"/usr/bin/env -S python{sys.version_info.major}.{sys.version_info.minor} -P"
    run(
        [*pack, "--console-script", "refract", "--python", interpreter, "-o", str(target)],
        target.parent,
        {"SOURCE_DATE_EPOCH": epoch},
    )
