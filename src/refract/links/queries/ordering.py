"""The sort orders of lists of links, and positions within them.

Ids are in order of creation. Sorting by clicks has two parts: links with clicks, then those without
any, by creation. So links need no row of totals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_
from sqlalchemy.orm import InstrumentedAttribute

from refract.links.models import Link, LinkTotals


class LinkSort(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    CLICKS = "clicks"
    LAST_CLICK = "last_click"


CLICK_SORTS = (LinkSort.CLICKS, LinkSort.LAST_CLICK)
SortColumn = InstrumentedAttribute[Any] | ColumnElement[Any]
LinkRow = tuple[Link, Any]
"""A link and the value it is sorted by: None for links without clicks, and if only ids count."""


@dataclass(frozen=True, slots=True)
class SortColumns:
    """The columns of an order. `value` is None where ids alone decide.

    `nulls_last` means that links without a value are among the rows, as the last ones.
    """

    value: SortColumn | None
    link_id: SortColumn
    nulls_last: bool = False

    @property
    def order(self) -> list[ColumnElement[Any]]:
        order: list[ColumnElement[Any]] = [self.link_id.desc()]
        if self.value is not None:
            order.insert(0, self.value.desc())
        if self.value is not None and self.nulls_last:
            order.insert(0, self.value.is_(None).asc())
        return order

    def is_after(self, position: Sequence[Any]) -> ColumnElement[bool]:
        """Return the condition for rows after a position.

        The first bound follows from the rest, but lets every query planner start in the middle of
        the index.
        """
        *values, number = position
        column = self.value
        if column is None:
            return and_(self.link_id < number)
        value = values[0]
        if self.nulls_last and not value:
            return and_(column.is_(None), self.link_id < number)
        if self.nulls_last:
            same = and_(column == value, self.link_id < number)
            return or_(column.is_(None), column < value, same)
        return and_(column <= value, or_(column < value, self.link_id < number))


def get_click_column(sort: LinkSort) -> InstrumentedAttribute[Any]:
    return LinkTotals.total_clicks if sort == LinkSort.CLICKS else LinkTotals.last_clicked_at


def get_click_value(sort: LinkSort) -> SortColumn:
    """Return the column of clicks, which is NULL for links without any."""
    column = get_click_column(sort)
    return func.nullif(column, 0) if sort == LinkSort.CLICKS else column


def has_clicks(sort: LinkSort) -> ColumnElement[bool]:
    column = get_click_column(sort)
    return column > 0 if sort == LinkSort.CLICKS else column.is_not(None)


def get_position(row: LinkRow, sort: LinkSort) -> tuple[Any, ...]:
    """Return the position of a cursor after a row: 0 or None for links without clicks."""
    link, value = row
    if sort == LinkSort.CREATED:
        return (link.id,)
    return (0 if value is None and sort == LinkSort.CLICKS else value, link.id)


def sort_keys(rows: Iterable[Any]) -> list[tuple[int, Any, Link | None]]:
    """Sort rows of a link's id, its sort value and the link itself."""
    return sorted(rows, key=lambda row: _get_rank(row[0], row[1]), reverse=True)


def merge_rows(rows: Sequence[LinkRow], others: Sequence[LinkRow], limit: int) -> list[LinkRow]:
    """Return the first rows of two lists that are sorted alike. A link may be in both."""
    by_id = {link.id: (link, value) for link, value in (*others, *rows)}
    merged = sorted(by_id.values(), key=lambda row: _get_rank(row[0].id, row[1]), reverse=True)
    return merged[:limit]


def _get_rank(link_id: int, value: Any) -> tuple[Any, ...]:
    return (False, link_id) if value is None else (True, value, link_id)
