"""Bookmarks from files: ours, every browser's, and what Pocket, Raindrop, linkding and Karakeep give away.

`open_rows` turns a file into rows and knows nothing of a database; `bring` makes items of them, a batch at a time.
"""

from refract.library.imports.formats import BookmarkRows, Kind, open_rows
from refract.library.imports.rows import Bookmark, BookmarkRow, TagRow

__all__ = ["Bookmark", "BookmarkRow", "BookmarkRows", "Kind", "TagRow", "open_rows"]
