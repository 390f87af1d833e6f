"""Parsed searches, and their queries for each database.

All words must occur, by their beginning, or by a part in the title, a tag or the host; `-word` must
not; `#tag` selects a tag, `is:unread` a reading state. Everything else separates words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from refract.core.settings.model import Dialect
from refract.core.words import MIN_PART, encode_number, encode_word, query_terms
from refract.tags.grammar import personal_key

MAX_WORDS = 8
WORD = "w0"
"""Marks a word of any field."""
TITLE = "t0"
"""Marks a word of the title or of a tag."""
PART = "p0"
"""Marks the end of a word of the host."""
TITLE_PART = "q0"
"""Marks the end of a word of the title or of a tag."""
OWNER_MARK = "u0"
"""Marks the owner of an item: a search reads no words of other users."""
STATE_WORDS: dict[str, tuple[str, bool]] = {
    "unread": ("unread", True),
    "read": ("unread", False),
    "favorite": ("favorite", True),
    "favourite": ("favorite", True),
    "archived": ("archived", True),
}
"""What may follow `is:`, as a reading state and whether an item has it."""
_PIECES = re.compile(
    r"""(?<!\S)(?P<unlike>-?)is:(?P<state>unread|read|favou?rite|archived)(?!\S)"""
    r"""|(?P<tag>(?<!\S)-?\#(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]+)))"""
    r"""|(?P<word>[^\s"]+)|["\s]+""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """A search: words that must and must not occur, tags by folded name, and reading states."""

    words: Sequence[str] = ()
    without: Sequence[str] = ()
    tags: Sequence[str] = ()
    without_tags: Sequence[str] = ()
    states: Sequence[tuple[str, bool]] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to search for."""
        return not (self.words or self.without or self.tags or self.without_tags or self.states)

    @property
    def has_words(self) -> bool:
        return bool(self.words or self.without)


def parse_terms(typed: str) -> SearchTerms:
    """Return the search that a text means. No text is invalid; what has no meaning is ignored."""
    words: dict[str, None] = {}
    without: dict[str, None] = {}
    tags: dict[str, None] = {}
    without_tags: dict[str, None] = {}
    states: dict[tuple[str, bool], None] = {}
    for piece in _PIECES.finditer(typed):
        if piece["state"]:
            state, has_state = STATE_WORDS[piece["state"].lower()]
            states[state, has_state != bool(piece["unlike"])] = None
        elif piece["tag"]:
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
        tuple(kept),
        tuple(refused),
        tuple(tags)[:MAX_WORDS],
        tuple(without_tags)[:MAX_WORDS],
        tuple(states),
    )


TokenChoice = tuple[str, ...]
"""Tokens of which one must match."""


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """Tokens for one query of the index, each matched by its beginning.

    One token of each choice in `every`, and none of `none`; and not one of each choice in `unless`,
    if it is not empty.
    """

    owner: int
    every: Sequence[TokenChoice] = ()
    none: Sequence[str] = ()
    unless: Sequence[TokenChoice] = ()

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
        every = [spell_choice(dialect, choice) for choice in self.every]
        unless = [spell_choice(dialect, choice) for choice in self.unless]
        none = [spell_choice(dialect, (token,)) for token in self.none]
        if dialect == "mysql":
            parts = [f"+{mine}", *(f"+{choice}" for choice in every)]
            return " ".join([*parts, *(f"-{token}" for token in none)])
        if dialect == "postgresql":
            parts = [mine, *every, *([f"!({' & '.join(unless)})"] if unless else [])]
            return " & ".join([*parts, *(f"!{token}" for token in none)])
        but = [*none, *([f"({' AND '.join(unless)})"] if unless else [])]
        found = f"({' AND '.join([mine, *every])})"
        return f"{found} NOT ({' OR '.join(but)})" if but else found


_ENDINGS: dict[Dialect, tuple[str, str]] = {
    "mysql": ("*", " "),
    "postgresql": (":*", " | "),
    "sqlite": ("*", " OR "),
}
"""What follows the beginning of a token, and what stands between choices."""


def spell_choice(dialect: Dialect, choice: TokenChoice) -> str:
    """Return a choice of tokens in the syntax of a database."""
    ending, between = _ENDINGS[dialect]
    spelled = between.join(f"{token}{ending}" for token in choice)
    return f"({spelled})" if len(choice) > 1 else spelled


def match_title(owner: int, terms: SearchTerms) -> TokenMatch:
    """Match all words in the title or the tags."""
    return TokenMatch(
        owner,
        [_choose_tokens(word, TITLE, TITLE_PART) for word in terms.words],
        [encode_word(WORD, word) for word in terms.without],
    )


def match_any_field(owner: int, terms: SearchTerms) -> TokenMatch:
    """Match all words anywhere, but not all of them in title or tags: `match_title` finds those."""
    return TokenMatch(
        owner,
        [_choose_tokens(word, WORD, TITLE_PART, PART) for word in terms.words],
        [encode_word(WORD, word) for word in terms.without],
        unless=[_choose_tokens(word, TITLE, TITLE_PART) for word in terms.words],
    )


def _choose_tokens(word: str, mark: str, *part_marks: str) -> TokenChoice:
    """Return the tokens of a word: as the beginning of one, and if it is long enough inside one."""
    marks = (mark, *part_marks) if len(word) >= MIN_PART else (mark,)
    return tuple(encode_word(kind, word) for kind in marks)
