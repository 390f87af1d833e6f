"""Asking each database's index, so that nobody else needs to know which it is."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, cast, column, literal_column, not_, table
from sqlalchemy.dialects.mysql import match
from sqlalchemy.dialects.postgresql import TSQUERY

from refract.core.settings import Dialect
from refract.library.search.terms import Match
from refract.library.search_models import ItemSearch

_SHADOW = table("item_search_fts", column("rowid"))


def source(dialect: Dialect) -> tuple[FromClause, ColumnElement[int]]:
    """What is searched, and its column of item ids: the newest come first along it without any sorting on SQLite."""
    if dialect == "sqlite":
        return _SHADOW, _SHADOW.c.rowid
    return ItemSearch.__table__, ItemSearch.__table__.c.item_id


def matching(dialect: Dialect, asked: Match) -> ColumnElement[bool]:
    """The rows of `source` with these words."""
    spelled: Any = asked.spelled(dialect)
    if dialect == "sqlite":
        return literal_column("item_search_fts").op("MATCH", is_comparison=True)(spelled)
    tokens = ItemSearch.__table__.c.tokens
    if dialect == "postgresql":
        return tokens.op("@@", is_comparison=True)(cast(spelled, TSQUERY))
    found = match(tokens, against=spelled).in_boolean_mode()
    return found if asked.exception is None else and_(found, not_(matching(dialect, asked.exception)))
