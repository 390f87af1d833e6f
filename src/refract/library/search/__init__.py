"""Full-text search for items, the same on three databases.

`terms` parses a search and needs no database; `index` stores the words of items, `match` queries
them.
"""

from refract.library.search.index import index_bare_item, index_item, index_items
from refract.library.search.match import build_match_clause, get_search_source
from refract.library.search.terms import SearchTerms, parse_terms

__all__ = [
    "SearchTerms",
    "build_match_clause",
    "get_search_source",
    "index_bare_item",
    "index_item",
    "index_items",
    "parse_terms",
]
