"""Imports of bookmark files: Refract, browsers, Pocket, Raindrop, linkding and Karakeep.

`open_rows` turns a file into rows and needs no database; `importer` makes items of them in batches.
"""

from refract.library.imports.formats import BookmarkFileFormat, BookmarkRows, open_rows
from refract.library.imports.rows import Bookmark, BookmarkRow, TagRow

__all__ = ["Bookmark", "BookmarkFileFormat", "BookmarkRow", "BookmarkRows", "TagRow", "open_rows"]
