"""The version of a release, and what CHANGELOG.md says about it."""

import re
import tomllib
from pathlib import Path

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_SEMANTIC = re.compile(r"\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?")


class ReleaseRefused(Exception):
    """The tree can't be released as it is; the message says what to do."""


def read_version(tree: Path) -> str:
    """Return the version in pyproject.toml."""
    version = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["version"]
    if not _SEMANTIC.fullmatch(version):
        raise ReleaseRefused(
            f"The version in pyproject.toml, {version}, is not one of semantic versioning, like"
            " 1.2.3 or 1.2.3-rc.1."
        )
    return str(version)


def read_changes(tree: Path, heading: str) -> str:
    """Return a section of CHANGELOG.md: of a version, or `Unreleased`."""
    sections = _HEADING.split((tree / "CHANGELOG.md").read_text())[1:]
    texts = {
        title.partition(" ")[0]: text.strip()
        for title, text in zip(sections[::2], sections[1::2], strict=True)
    }
    if not texts.get(heading):
        raise ReleaseRefused(
            f"CHANGELOG.md has no changes under “## {heading}”. Rename “## Unreleased” to"
            f" “## {heading} (date)”, and leave an empty “## Unreleased” above it."
        )
    return texts[heading]
