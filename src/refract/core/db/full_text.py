"""Full-text search on two databases, without loading the dialect of the other one."""

from importlib import import_module
from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.types import UserDefinedType


class TextSearchVector(UserDefinedType[str]):
    """PostgreSQL's `tsvector`."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "TSVECTOR"


class TextSearchQuery(UserDefinedType[str]):
    """PostgreSQL's `tsquery`."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "TSQUERY"


def match_boolean(column: ColumnElement[Any], words: Any) -> ColumnElement[bool]:
    """Return MariaDB's `MATCH (column) AGAINST (words IN BOOLEAN MODE)`."""
    mysql = import_module("sqlalchemy.dialects.mysql")
    found: ColumnElement[bool] = mysql.match(column, against=words).in_boolean_mode()
    return found
