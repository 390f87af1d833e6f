"""Schemas of imports into the library."""

from refract.imports.schemas import ImportProgress
from refract.library.imports.formats import BookmarkFileFormat


class ImportOut(ImportProgress):
    """An import into the library and its progress."""

    kind: BookmarkFileFormat
