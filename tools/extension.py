"""The compiled fast lane and ingest: built from `.pyx` files where there is a C compiler.

    python3 -m tools.extension            into src/refract, for the Python that runs this
    python3 -m tools.extension --into DIR into the copy of the package in DIR

Does nothing if it is up to date. Prints why if it can't be built, and then exits with 1: Refract
runs without it (`refract.core.compiled`).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD_LOCK = ROOT / "requirements-build.lock"
PACKAGE = ROOT / "src/refract"
SOURCES = ("redirect/_lane.pyx", "clicks/_frames.pyx")
DIGEST_CODE = '''
cdef extern from *:
    """
    static const char source_digest[] = "{digest}";
    """
    const char source_digest[]

SOURCE_DIGEST = source_digest.decode("ascii")
'''
"""As C text, since Cython may compress strings, and `is_current` looks for it in the file."""


class NotCompiled(Exception):
    """A module can't be compiled here; the message is the reason."""


def find_compiler() -> list[str]:
    """Return the command of a C compiler that can build extensions of this Python."""
    if sys.byteorder != "little":
        raise NotCompiled("this machine is not little-endian")
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    found = shutil.which(command[0]) or shutil.which("cc")
    if found is None:
        raise NotCompiled(f"there is no C compiler ({command[0]})")
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        raise NotCompiled(f"there are no headers of Python ({header})")
    return [found, *command[1:]]


def get_target(package: Path, source_name: str) -> Path:
    """Return the file of a compiled module for this Python."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return (package / source_name).with_suffix(str(suffix))


def is_current(package: Path) -> bool:
    """Return whether everything has been compiled from these sources."""
    return all(_is_current(package, name) for name in SOURCES)


def _is_current(package: Path, source_name: str) -> bool:
    target = get_target(package, source_name)
    return target.exists() and _digest(package, source_name).encode() in target.read_bytes()


def build_modules(package: Path) -> dict[str, Path]:
    """Compile the modules of a package that are not current. Return all files, by source."""
    stale = [name for name in SOURCES if not _is_current(package, name)]
    if stale:
        compiler = find_compiler()
        with tempfile.TemporaryDirectory() as directory:
            work = Path(directory)
            cython = _provide_cython(work)
            for name in stale:
                _build_module(package, name, compiler, cython)
    return {name: get_target(package, name) for name in SOURCES}


def _build_module(package: Path, source_name: str, compiler: list[str], cython: str) -> None:
    target, source = get_target(package, source_name), package / source_name
    module = ".".join(["refract", *Path(source_name).with_suffix("").parts])
    with tempfile.TemporaryDirectory() as directory:
        # Only relative names: both tools write those of files into what they make, and equal
        # sources must give equal bytes wherever they lie.
        work = Path(directory)
        for included in _list_included(source):
            (work / included).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(package / included, work / included)
        digest = _digest(package, source_name)
        (work / source.name).write_text(source.read_text() + DIGEST_CODE.format(digest=digest))
        command = [sys.executable, "-m", "cython", "-3", "--module-name", module, "-I", "."]
        _run([*command, source.name], work, PYTHONPATH=cython)
        generated = source.with_suffix(".c").name
        _run([*compiler, *_get_flags(), generated, "-o", target.name], work)
        built = work / target.name
        # Renamed into place: a process that has loaded the old one keeps it.
        unfinished = target.with_suffix(".new")
        try:
            shutil.copyfile(built, unfinished)
            unfinished.replace(target)
        except OSError as exc:
            raise NotCompiled(f"{target.parent} can't be written: {exc.strerror}") from exc


def _digest(package: Path, source_name: str) -> str:
    """Return the digest of a source and of what it includes, as `refract.core.compiled` does."""
    source = package / source_name
    files = [source, *(package / name for name in _list_included(source))]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def _list_included(source: Path) -> list[str]:
    """Return the files that a source includes, relative to the package."""
    lines = source.read_text().splitlines()
    return [line.split('"')[1] for line in lines if line.startswith('include "')]


def _get_flags() -> list[str]:
    linking = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-Wl,-s"]
    include = sysconfig.get_path("include")
    return ["-shared", "-fPIC", "-O2", "-DNDEBUG", "-fvisibility=hidden", f"-I{include}", *linking]


def _provide_cython(work: Path) -> str:
    """Return a `PYTHONPATH` with Cython: empty if it is installed, else a temporary directory."""
    if _has_cython():
        return ""
    place = work / "cython"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    locked = ["--no-deps", "--require-hashes", "--target", str(place), "-r", str(BUILD_LOCK)]
    _run([*pip, *locked], work)
    return str(place)


def _has_cython() -> bool:
    check = [sys.executable, "-c", "import Cython; assert int(Cython.__version__[0]) >= 3"]
    return subprocess.run(check, check=False, capture_output=True).returncode == 0


def _run(command: list[str], directory: Path, **environment: str) -> None:
    done = subprocess.run(
        command,
        check=False,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **{name: text for name, text in environment.items() if text}},
    )
    if done.returncode != 0:
        raise NotCompiled(f"{Path(command[0]).name} failed:\n{done.stdout[-2000:]}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tools.extension")
    parser.add_argument("--into", type=Path, default=PACKAGE, help="a copy of the package")
    given = parser.parse_args()
    try:
        build_modules(given.into)
    except NotCompiled as exc:
        print(
            f"Fast lane and ingest are not compiled, because {exc}. Both work in Python, for more"
            " CPU.",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
