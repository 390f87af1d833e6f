"""Links from files: ours, and what YOURLS, Shlink and Kutt give away.

`open_rows` turns a file into rows and knows nothing of a database; `bring` makes links of them, a batch at a time.
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
