"""Modules that are compiled at installation where that is possible (tools/extension.py)."""

import hashlib
import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import Final

LANE_VARIABLE: Final = "REFRACT_LANE"
"""Set to `python`, nothing compiled is used. For tests, measurements and diagnosis."""
PACKAGE: Final = Path(__file__).resolve().parents[1]


def compute_digest(source: Path, package: Path = PACKAGE) -> str:
    """Return the digest of a module's source and of what it includes."""
    included = [
        package / line.split('"')[1]
        for line in source.read_text().splitlines()
        if line.startswith('include "')
    ]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in [source, *included])).hexdigest()


def load_compiled(name: str) -> tuple[ModuleType | None, str]:
    """Return a compiled module, or None and the reason."""
    package, _, module = name.rpartition(".")
    try:
        found = importlib.import_module(name)
    except ImportError as exc:
        missing = exc.name in (package, name)
        return None, "it was not compiled" if missing else f"it can't be loaded: {exc}"
    source = PACKAGE.joinpath(*package.split(".")[1:], f"{module}.pyx")
    if source.exists() and compute_digest(source) != found.SOURCE_DIGEST:
        return None, "it was compiled from another version"
    return found, ""


def choose_compiled(name: str) -> tuple[ModuleType | None, str]:
    """Return a compiled module unless it is turned off, or None and the reason."""
    if os.environ.get(LANE_VARIABLE) == "python":
        return None, f"{LANE_VARIABLE} is python"
    return load_compiled(name)
