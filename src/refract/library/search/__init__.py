"""Finding items by their words, the same on three databases.

`terms` reads what somebody typed and knows nothing of a database; `indexing` keeps the words of items, `matching` asks for them.
"""

from refract.library.search.index import index_item, index_items
from refract.library.search.match import build_match_clause, get_search_source
from refract.library.search.terms import SearchTerms, parse_terms

__all__ = [
    "SearchTerms",
    "build_match_clause",
    "get_search_source",
    "index_item",
    "index_items",
    "parse_terms",
]
