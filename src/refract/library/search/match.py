"""Full-text queries in the dialect of each database, and near matches by trigrams."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    and_,
    cast,
    column,
    func,
    literal_column,
    not_,
    or_,
    select,
    table,
    text,
)
from sqlalchemy.orm import InstrumentedAttribute

from refract.core.db.full_text import TextSearchQuery, match_boolean
from refract.core.db.session import ReadSession
from refract.core.settings.model import Dialect
from refract.library.models import Item
from refract.library.search.models import ItemSearch
from refract.library.search.terms import TokenChoice, TokenMatch, spell_choice

_UNKNOWN_SHARE = 0.001
"""The assumed share of items that have a token too rare for the statistics."""
_MIN_SHARE_RATIO = 50
"""The number of items in a posting list whose cost is roughly that of checking one row."""
_TOKEN_SHARES_SQL = text("""
    SELECT sought.token, COALESCE(SUM(known.share), 0) AS share
    FROM unnest(CAST(:tokens AS text[])) AS sought (token)
    LEFT JOIN (
        SELECT unnest(CAST(CAST(most_common_elems AS text) AS text[])) AS element,
            unnest(most_common_elem_freqs) AS share
        FROM pg_stats
        WHERE schemaname = current_schema() AND tablename = 'item_search' AND attname = 'tokens'
    ) AS known ON starts_with(known.element, sought.token)
    GROUP BY sought.token
""")
_FTS_TABLE = table("item_search_fts", column("rowid"))


async def prepare_search(session: ReadSession) -> None:
    """Let PostgreSQL plan this transaction's searches by their words.

    A generic plan reads the whole library for rare words.
    """
    if session.dialect == "postgresql":
        await session.execute(select(func.set_config("plan_cache_mode", "force_custom_plan", True)))


def get_search_source(dialect: Dialect) -> tuple[FromClause, ColumnElement[int]]:
    """Return what is searched and its column of item ids.

    On SQLite, the newest come first along it without sorting.
    """
    if dialect == "sqlite":
        return _FTS_TABLE, _FTS_TABLE.c.rowid
    return ItemSearch.__table__, ItemSearch.__table__.c.item_id


async def find_common_choices(
    session: ReadSession, token_match: TokenMatch
) -> frozenset[TokenChoice]:
    """Return choices whose posting lists cost more than checking the rows that rarer ones leave.

    PostgreSQL only: GIN collects all items of a prefix before it compares. The share of each token
    is taken from the planner's statistics.
    """
    if session.dialect != "postgresql" or len(token_match.every) < 2:
        return frozenset()
    tokens = [token for choice in token_match.every for token in choice]
    rows = (await session.execute(_TOKEN_SHARES_SQL, {"tokens": tokens})).all()
    found = {row.token: row.share for row in rows}
    shares = {
        choice: max(sum(found[token] for token in choice), _UNKNOWN_SHARE)
        for choice in token_match.every
    }
    rarest = min(shares.values())
    return frozenset(
        choice for choice, share in shares.items() if share >= _MIN_SHARE_RATIO * rarest
    )


def build_match_clause(
    dialect: Dialect, token_match: TokenMatch, seen: Collection[TokenChoice] = ()
) -> ColumnElement[bool]:
    """Return the condition for rows with these words.

    PostgreSQL checks choices in `seen` on the rows instead of in its index.
    """
    if dialect == "postgresql" and seen:
        indexed = replace(
            token_match, every=[choice for choice in token_match.every if choice not in seen]
        )
        checked_words = [
            spell_choice(dialect, choice) for choice in token_match.every if choice in seen
        ]
        rest = cast(" & ".join(checked_words), TextSearchQuery)
        # the function, unlike the operator, does not use the index
        checked = func.ts_match_vq(ItemSearch.__table__.c.tokens, rest)
        return and_(build_match_clause(dialect, indexed), checked)
    spelled: Any = token_match.to_query(dialect)
    if dialect == "sqlite":
        return literal_column("item_search_fts").op("MATCH", is_comparison=True)(spelled)
    tokens = ItemSearch.__table__.c.tokens
    if dialect == "postgresql":
        return tokens.op("@@", is_comparison=True)(cast(spelled, TextSearchQuery))
    found = match_boolean(tokens, spelled)
    return (
        found
        if token_match.exception is None
        else and_(found, not_(build_match_clause(dialect, token_match.exception)))
    )


# Parts of words and typing errors in titles and hosts. Needs trigrams: PostgreSQL with `pg_trgm`.

MIN_WORD_LENGTH = 3
"""A shorter word has no trigram of its own."""
SIMILARITY_THRESHOLD = "0.4"
"""The share of a word's trigrams that must match.

Two swapped letters in a word of eight still do.
"""


async def find_near_titles(
    session: ReadSession,
    user_id: int,
    words: Sequence[str],
    condition: ColumnElement[bool],
    limit: int,
) -> list[Item]:
    """Return items whose title or host is similar to every word, most similar first.

    Returns nothing on a database without trigrams.
    """
    if session.dialect != "postgresql" or any(len(word) < MIN_WORD_LENGTH for word in words):
        return []
    if not await session.scalar(text("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")):
        return []
    await session.execute(
        select(func.set_config("pg_trgm.word_similarity_threshold", SIMILARITY_THRESHOLD, True))
    )  # this transaction's
    near = [
        or_(
            _build_contains_clause(Item.title, word),
            _build_contains_clause(Item.site, word),
            Item.title.op("%>", is_comparison=True)(word),
        )
        for word in words
    ]
    title = func.coalesce(Item.title, "")
    score = sum(
        (func.word_similarity(word, title) for word in words[1:]),
        func.word_similarity(words[0], title),
    )
    query = select(Item).where(Item.user_id == user_id, condition, *near)
    return list(await session.scalars(query.order_by(score.desc(), Item.id.desc()).limit(limit)))


def _build_contains_clause(
    column: InstrumentedAttribute[str | None], word: str
) -> ColumnElement[bool]:
    return column.icontains(word, autoescape=True)
