"""Karakeep's search: words, `#tag`, `is:fav`, `is:archived`, `-` for not. Pure."""

import re
from dataclasses import dataclass

from refract.compat.search import parse_search
from refract.library.models import ItemType
from refract.library.queries.numbered import PageSearch

_MARK = re.compile(r"(?<!\S)(-?)is:(fav|archived|tagged|link|text)(?!\S)", re.IGNORECASE)
_MINUS = re.compile(r"(?<![^\s(])-(?=[^\s-])")
_TYPES = {"link": ItemType.ARTICLE, "text": ItemType.NOTE}
ALL_TYPES = (ItemType.ARTICLE, ItemType.NOTE)


@dataclass(slots=True)
class KarakeepSearch:
    """The words of a search and the marks that it asks for."""

    words: PageSearch
    favorite: bool | None = None
    archived: bool | None = None
    types: tuple[ItemType, ...] = ALL_TYPES


def parse_karakeep_search(q: str) -> KarakeepSearch:
    """Return the search that a text means. A mark counts for the whole search."""
    q = q[:500]
    tagged = [not minus for minus, name in _MARK.findall(q) if name.lower() == "tagged"]
    rest = _MINUS.sub("not ", _MARK.sub(" ", q))
    if tagged:
        rest += " not !untagged" if tagged[-1] else " !untagged"
    found = KarakeepSearch(parse_search(rest))
    for minus, name in _MARK.findall(q):
        match name.lower():
            case "fav":
                found.favorite = not minus
            case "archived":
                found.archived = not minus
            case "link" | "text" as kind:
                chosen = _TYPES[kind]
                found.types = tuple(
                    known for known in found.types if (known == chosen) != bool(minus)
                )
    return found
