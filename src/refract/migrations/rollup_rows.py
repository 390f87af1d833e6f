"""Additions to roll-ups in downgrades, row by row."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from refract.clicks.ingest.batch import RollupDelta
from refract.clicks.rollups.granularity import DAY, MONTH, QUARTER, start_of
from refract.clicks.rollups.rows import RollupRow, decode_row

VALUES = ("people", "bots", "private", "uniques", "visitors", "parts")
ROLLUPS = sa.table(
    "click_rollups",
    *(sa.column(name) for name in ("target_id", "kind", "grain", "start", *VALUES)),
)
_HORIZONS = {MONTH: "months_from", DAY: "days_from"}


def add_to_rollups(
    bind: sa.Connection,
    state: Any,
    slot: tuple[int, int, int],
    delta: RollupDelta,
    grains: Iterable[int],
) -> None:
    """Add a quarter hour of a target and kind to its rows of these grains, if they are kept.

    `state` is the row of `rollup_state`. The day must come before its month.
    """
    target, kind, quarter = slot
    more_in_day = 0
    for grain in grains:
        start = start_of(grain, quarter)
        if state is not None and start < getattr(state, _HORIZONS.get(grain, "quarters_from")):
            continue
        key = {"target_id": target, "kind": kind, "grain": grain, "start": start}
        same = [ROLLUPS.c[name] == value for name, value in key.items()]
        query = sa.select(*(ROLLUPS.c[name] for name in VALUES)).where(*same)
        stored = bind.execute(query).one_or_none()
        row = RollupRow() if stored is None else decode_row(*stored)
        row.add_clicks(delta)
        if grain == MONTH:
            row.uniques += more_in_day
        else:
            more = row.add_visitors(delta)
            more_in_day = more if grain == DAY else more_in_day
        values = dict(zip(VALUES, row.encode(kind, pack=grain != QUARTER), strict=True))
        if stored is None:
            bind.execute(sa.insert(ROLLUPS).values(**key, **values))
        else:
            bind.execute(sa.update(ROLLUPS).where(*same).values(**values))
