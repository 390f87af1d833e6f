"""Asking each database's index, so that nobody else needs to know which it is."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, cast, column, func, literal_column, not_, select, table, text
from sqlalchemy.dialects.mysql import match
from sqlalchemy.dialects.postgresql import TSQUERY

from refract.core.db import ReadSession
from refract.core.settings import Dialect
from refract.library.search.terms import Match
from refract.library.search_models import ItemSearch

_UNKNOWN_SHARE = 0.001
"""How many of the items have a token that is too rare for the statistics, at most and roughly."""
_WORTH_LOOKING = 50
"""So many items of a list cost what one look costs, roughly."""
_SHARES = text("""
    SELECT sought.token, COALESCE(SUM(known.share), 0) AS share
    FROM unnest(CAST(:tokens AS text[])) AS sought (token)
    LEFT JOIN (
        SELECT unnest(CAST(CAST(most_common_elems AS text) AS text[])) AS element, unnest(most_common_elem_freqs) AS share
        FROM pg_stats WHERE schemaname = current_schema() AND tablename = 'item_search' AND attname = 'tokens'
    ) AS known ON starts_with(known.element, sought.token)
    GROUP BY sought.token
""")
_SHADOW = table("item_search_fts", column("rowid"))


async def prepare(session: ReadSession) -> None:
    """Let PostgreSQL plan this transaction's searches by their words: a plan for any words reads the whole library for rare ones."""
    if session.dialect == "postgresql":
        await session.execute(select(func.set_config("plan_cache_mode", "force_custom_plan", True)))


def source(dialect: Dialect) -> tuple[FromClause, ColumnElement[int]]:
    """What is searched, and its column of item ids: the newest come first along it without any sorting on SQLite."""
    if dialect == "sqlite":
        return _SHADOW, _SHADOW.c.rowid
    return ItemSearch.__table__, ItemSearch.__table__.c.item_id


async def crowded(session: ReadSession, asked: Match) -> frozenset[str]:
    """Tokens of a question to PostgreSQL whose list of items costs more than a look at those items that the rarer tokens leave.

    GIN gathers all items of a beginning before it compares. The planner's own statistics know what is in how many of them.
    """
    if session.dialect != "postgresql" or len(asked.every) < 2:
        return frozenset()
    rows = (await session.execute(_SHARES, {"tokens": list(asked.every)})).all()
    shares = {row.token: max(row.share, _UNKNOWN_SHARE) for row in rows}
    rarest = min(shares.values())
    return frozenset(token for token, share in shares.items() if share >= _WORTH_LOOKING * rarest)


def matching(dialect: Dialect, asked: Match, seen: Collection[str] = ()) -> ColumnElement[bool]:
    """The rows of `source` with these words. For those that are `seen`, PostgreSQL looks into the rows instead of asking its index."""
    if dialect == "postgresql" and seen:
        indexed = replace(asked, every=[one for one in asked.every if one not in seen])
        rest = cast(" & ".join(f"{one}:*" for one in asked.every if one in seen), TSQUERY)
        return and_(matching(dialect, indexed), func.ts_match_vq(ItemSearch.__table__.c.tokens, rest))  # as a function no index knows it
    spelled: Any = asked.spelled(dialect)
    if dialect == "sqlite":
        return literal_column("item_search_fts").op("MATCH", is_comparison=True)(spelled)
    tokens = ItemSearch.__table__.c.tokens
    if dialect == "postgresql":
        return tokens.op("@@", is_comparison=True)(cast(spelled, TSQUERY))
    found = match(tokens, against=spelled).in_boolean_mode()
    return found if asked.exception is None else and_(found, not_(matching(dialect, asked.exception)))
