"""Versions of Refract that do not exist.

Copies of the package with a higher number and one more migration.
"""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

from refract.migrations import HEAD

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MIGRATION = '''"""A migration of a version that does not exist."""

from refract.migrations.steps import accept_older_code, add_column, drop_column
from refract.migrations.steps import refuse_older_code, sa

revision = "{revision}"
down_revision = "{before}"


def upgrade() -> None:
    add_column("links", sa.Column("note_of_tomorrow", sa.String(100)))
{refuse}

def downgrade() -> None:
    drop_column("links", "note_of_tomorrow")
{accept}'''


class Version(NamedTuple):
    """A directory for PYTHONPATH, and what is in it."""

    path: Path
    number: str
    revision: str


def this_version() -> Version:
    """The package as it is."""
    found = re.search(
        r'"([^"]+)"', (SOURCE / "refract" / "__init__.py").read_text().split("__version__")[1]
    )
    assert found is not None
    return Version(SOURCE, found[1], HEAD)


def next_version(home: Path, *, breaking: bool = False) -> Version:
    """A version whose links have one more column, which every question about a link asks for.

    A `breaking` one also says that older code cannot run on its schema.
    """
    target, revision = home / "next", f"{int(HEAD) + 1:04}"
    shutil.copytree(
        SOURCE, target
    )  # with what is compiled already: a first start would otherwise take long
    package = target / "refract"
    _edit(package / "__init__.py", r'__version__ = "[^"]+"', '__version__ = "99.0.0"')
    _edit(
        package / "links" / "models.py",
        r'(__tablename__ = "links"\n)',
        r"\1\n    note_of_tomorrow: Mapped[str | None] = mapped_column(String(100))\n",
    )
    refuse = f'    refuse_older_code("{revision}", "99.0.0")\n' if breaking else ""
    accept = f'    accept_older_code("{revision}")\n' if breaking else ""
    text = MIGRATION.format(revision=revision, before=HEAD, refuse=refuse, accept=accept)
    (package / "migrations" / "versions" / f"{revision}_tomorrow.py").write_text(text)
    return Version(target, "99.0.0", revision)


def _edit(path: Path, pattern: str, instead: str) -> None:
    edited, count = re.subn(pattern, instead, path.read_text(), count=1)
    assert count == 1, (path, pattern)
    path.write_text(edited)


class Installed:
    """A place that a version is installed in, over the one before, as a package manager does it."""

    def __init__(self, place: Path, version: Version) -> None:
        self.path = place
        self.install(version)

    def install(self, version: Version) -> None:
        draft = self.path.with_name(f"{self.path.name}.new")
        draft.symlink_to(version.path)
        draft.replace(self.path)
