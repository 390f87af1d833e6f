"""Import of links from our own files, and from YOURLS, Shlink and Kutt.

`open_link_file` reads a file into rows without a database; `LinkImporter` creates links from them
in batches.
"""

from refract.links.imports.formats import LinkFileFormat, LinkRows, open_link_file
from refract.links.imports.importer import (
    LinkImporter,
    LinkImportOutcome,
    LinkImportResult,
    NameConflictPolicy,
)
from refract.links.imports.rows import Candidate, LinkRow

__all__ = [
    "Candidate",
    "LinkFileFormat",
    "LinkImportOutcome",
    "LinkImportResult",
    "LinkImporter",
    "LinkRow",
    "LinkRows",
    "NameConflictPolicy",
    "open_link_file",
]
