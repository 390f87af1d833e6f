"""Click events with all their facts, in one query."""

from typing import Any, Final, cast

from sqlalchemy import ColumnElement, FromClause, Select, Table, func, select

from refract.clicks.models import (
    ClickAgent,
    ClickCampaign,
    ClickEvent,
    ClickPlace,
    ClickReferrer,
)
from refract.core.db.bulk import get_table
from refract.core.db.types import Model

FACT_MODELS: Final[dict[str, type[Model]]] = {
    "agent_id": ClickAgent,
    "geo_id": ClickPlace,
    "referrer_id": ClickReferrer,
    "campaign_id": ClickCampaign,
}
"""The tables of shared facts, by the column of an event that refers to them."""
_OWN_COLUMNS: Final = ("id", "seen_on")
_EVENT: Final = cast("Table", ClickEvent.__table__)


def list_fact_columns(model: type[Model]) -> list[str]:
    """Return the columns that events share."""
    return [column.name for column in get_table(model).c if column.name not in _OWN_COLUMNS]


def _build_columns() -> dict[str, ColumnElement[Any]]:
    found: dict[str, ColumnElement[Any]] = {
        column.name: column for column in _EVENT.c if column.name not in FACT_MODELS
    }
    for model in FACT_MODELS.values():
        shared = get_table(model)
        for name in list_fact_columns(model):
            # Events of older versions have their facts in their own columns.
            found[name] = func.coalesce(shared.c[name], _EVENT.c[name]).label(name)
    return found


def _build_source() -> FromClause:
    source: FromClause = _EVENT
    for name, model in FACT_MODELS.items():
        shared = get_table(model)
        source = source.outerjoin(shared, _EVENT.c[name] == shared.c.id)
    return source


EVENT_COLUMNS: Final = _build_columns()
"""The columns of an event by name, in the order of the table, with shared facts."""
_SOURCE: Final = _build_source()


def select_events(*columns: ColumnElement[Any]) -> Select[Any]:
    """Select from events and their shared facts; all columns of an event unless some are given."""
    return select(*(columns or EVENT_COLUMNS.values())).select_from(_SOURCE)
