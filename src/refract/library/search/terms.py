"""Parsed searches, and their queries for each database.

All words must occur, by their beginning; `-word` must not; `#tag` selects a tag. Everything else
separates words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from refract.core.settings.model import Dialect
from refract.core.words import encode_number, encode_word, query_terms
from refract.tags.grammar import personal_key

MAX_WORDS = 8
WORD = "w0"
"""Marks a word of any field."""
TITLE = "t0"
"""Marks a word of the title or of a tag."""
OWNER_MARK = "u0"
"""Marks the owner of an item: a search reads no words of other users."""
_PIECES = re.compile(
    r"""(?P<tag>(?<!\S)-?\#(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]+)))|(?P<word>[^\s"]+)|["\s]+"""
)


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """A search: words that must and must not occur, and tags by folded name."""

    words: Sequence[str] = ()
    without: Sequence[str] = ()
    tags: Sequence[str] = ()
    without_tags: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to search for."""
        return not (self.words or self.without or self.tags or self.without_tags)

    @property
    def has_words(self) -> bool:
        return bool(self.words or self.without)


def parse_terms(typed: str) -> SearchTerms:
    """Return the search that a text means. No text is invalid; what has no meaning is ignored."""
    words: dict[str, None] = {}
    without: dict[str, None] = {}
    tags: dict[str, None] = {}
    without_tags: dict[str, None] = {}
    for piece in _PIECES.finditer(typed):
        if piece["tag"]:
            name = personal_key(
                (piece["quoted"] if piece["quoted"] is not None else piece["bare"]).strip()
            )
            if name:
                (without_tags if piece["tag"].startswith("-") else tags)[name] = None
        elif text := piece["word"]:
            excluded = text.startswith("-") and len(text) > 1
            (without if excluded else words).update(dict.fromkeys(query_terms(text)))
    kept = list(words)[:MAX_WORDS]
    refused = [word for word in without if word not in words][:MAX_WORDS]
    return SearchTerms(
        tuple(kept), tuple(refused), tuple(tags)[:MAX_WORDS], tuple(without_tags)[:MAX_WORDS]
    )


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """Tokens for one query of the index, each matched by its beginning.

    All of `every` and none of `none`; of `any_of` at least one, if it is not empty; and not all of
    `unless`, if it is not empty.
    """

    owner: int
    every: Sequence[str] = ()
    none: Sequence[str] = ()
    any_of: Sequence[str] = ()
    unless: Sequence[str] = ()

    def without_exception(self) -> "TokenMatch":
        return replace(self, unless=())

    @property
    def exception(self) -> "TokenMatch | None":
        """Return `unless` as a query of its own: MariaDB cannot express it inside another."""
        return TokenMatch(self.owner, self.unless) if self.unless else None

    def to_query(self, dialect: Dialect) -> str:
        """Return the query in the syntax of a database.

        Tokens have only letters and digits, so nothing needs escaping.
        """
        mine = encode_number(OWNER_MARK, self.owner)
        if dialect == "mysql":
            parts = [f"+{mine}", *(f"+{token}*" for token in self.every)]
            parts += [f"+({' '.join(f'{token}*' for token in self.any_of)})"] if self.any_of else []
            return " ".join([*parts, *(f"-{token}*" for token in self.none)])
        if dialect == "postgresql":
            parts = [mine, *(f"{token}:*" for token in self.every)]
            parts += (
                [f"({' | '.join(f'{token}:*' for token in self.any_of)})"] if self.any_of else []
            )
            parts += (
                [f"!({' & '.join(f'{token}:*' for token in self.unless)})"] if self.unless else []
            )
            return " & ".join([*parts, *(f"!{token}:*" for token in self.none)])
        parts = [mine, *(f"{token}*" for token in self.every)]
        parts += [f"({' OR '.join(f'{token}*' for token in self.any_of)})"] if self.any_of else []
        but = [
            *(f"{token}*" for token in self.none),
            *([f"({' AND '.join(f'{token}*' for token in self.unless)})"] if self.unless else []),
        ]
        found = f"({' AND '.join(parts)})"
        return f"{found} NOT ({' OR '.join(but)})" if but else found


def match_title(owner: int, terms: SearchTerms) -> TokenMatch:
    """Match all words in the title or the tags."""
    return TokenMatch(
        owner,
        [encode_word(TITLE, word) for word in terms.words],
        [encode_word(WORD, word) for word in terms.without],
    )


def match_any_field(owner: int, terms: SearchTerms) -> TokenMatch:
    """Match all words anywhere, but not all of them in title or tags: `match_title` finds those."""
    titled = [encode_word(TITLE, word) for word in terms.words]
    every, none = (
        [encode_word(WORD, word) for word in words] for words in (terms.words, terms.without)
    )
    return TokenMatch(owner, every, none, unless=titled)
