"""Finding items by their words, the same on three databases.

`terms` reads what somebody typed and knows nothing of a database; `indexing` keeps the words of items, `matching` asks for them.
"""

from refract.library.search.indexing import index, reindex
from refract.library.search.matching import matching, source
from refract.library.search.terms import Terms, parse

__all__ = ["Terms", "index", "matching", "parse", "reindex", "source"]
