"""Searches of linkding and Karakeep. Pure.

Words, phrases, `#tag`, `and`, `or`, `not`, parentheses, `!unread`.
"""

import re
from collections.abc import Sequence

from refract.library.queries.numbered import PageMark, PageSearch, PageTag, PageTerms, PageWord

MAX_TERMS = 20
_MAX_DEPTH = 8
_TOKENS = re.compile(r'"([^"]*)"?|([()])|([^\s()"]+)')


def parse_search(q: str) -> PageSearch:
    """Return the search that a text means. No text is invalid: what makes no sense is left out."""
    tokens = [_read_token(match) for match in _TOKENS.finditer(q[:500])]
    return _SearchParser(tokens[: 3 * MAX_TERMS]).parse_any(0)


def _read_token(match: re.Match[str]) -> str | PageSearch:
    """Return an operator or a parenthesis as text, everything else as a term."""
    quoted, parenthesis, word = match.groups()
    if quoted is not None:
        return PageWord(quoted)
    if parenthesis or word.lower() in ("and", "or", "not"):
        return parenthesis or word.lower()
    if word.lower() in ("!unread", "!untagged"):
        return PageMark(word.lower()[1:])
    return PageTag(word[1:]) if word.startswith("#") and len(word) > 1 else PageWord(word)


class _SearchParser:
    """Recursive descent: `or` binds least, then `and`, which may be left out, then `not`."""

    def __init__(self, tokens: Sequence[str | PageSearch]) -> None:
        self._tokens = tokens
        self._place = 0

    def _peek(self) -> str | PageSearch | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def parse_any(self, depth: int) -> PageSearch:
        terms = [self._parse_all(depth)]
        while self._peek() == "or":
            self._place += 1
            terms.append(self._parse_all(depth))
        filled = [term for term in terms if term != PageTerms()]
        return filled[0] if len(filled) == 1 else PageTerms(filled, is_any=True)

    def _parse_all(self, depth: int) -> PageSearch:
        terms: list[PageSearch] = []
        while (piece := self._peek()) is not None and piece != "or" and (piece != ")" or not depth):
            self._place += 1
            if piece in ("and", ")") or (piece == "(" and depth >= _MAX_DEPTH):
                continue
            terms += self._parse_one(piece, depth)
        return terms[0] if len(terms) == 1 else PageTerms(tuple(terms))

    def _parse_one(self, piece: str | PageSearch, depth: int) -> list[PageSearch]:
        if piece == "(":
            inner = self.parse_any(depth + 1)
            if self._peek() == ")":
                self._place += 1
            return [inner] if inner != PageTerms() else []
        if piece == "not":
            follows = self._peek()
            if follows is None or follows in ("and", "or", ")"):
                return []
            self._place += 1
            return [PageTerms(tuple(self._parse_one(follows, depth)), is_none=True)]
        return [] if isinstance(piece, str) else [piece]
