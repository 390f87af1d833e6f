"""Bookmarks from files: ours, every browser's, and what Pocket, Raindrop, linkding and Karakeep give away.

`open_rows` turns a file into rows and knows nothing of a database; `bring` makes items of them, a batch at a time.
"""

from refract.library.importing.formats import Kind, Rows, open_rows
from refract.library.importing.rows import Bookmark, Row, TagRow, Unreadable

__all__ = ["Bookmark", "Kind", "Row", "Rows", "TagRow", "Unreadable", "open_rows"]
