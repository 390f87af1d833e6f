"""Changes of packs, for the holder of the lock of the state."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Table, delete, select

from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.models import ClickPack
from refract.clicks.rollups.granularity import DAY, MONTH, start_of, to_datetime, to_seconds
from refract.clicks.rollups.packs import MAX_PACK_BYTES, encode_entry, iter_entries, split_pack
from refract.clicks.rollups.rows import RollupRow, add_delta, decode_row
from refract.clicks.rollups.state import lock_progress, save_progress
from refract.clicks.rollups.store import load_packs, load_rollups, save_packs, save_rollups
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.slices import write_in_slices

BATCH_SIZE: Final = 500
"""Packs that become months in one transaction."""
_PACKS: Table = ClickPack.__table__  # type: ignore[assignment]


@dataclass(slots=True)
class _Pack:
    people: int = 0
    bots: int = 0
    data: bytes = b""
    is_changed: bool = False


class PackUpdate:
    """Packs that are loaded, changed and saved together."""

    def __init__(self) -> None:
        self._packs: dict[RollupSlot, _Pack] = {}

    async def load(self, session: WriteSession, days: Iterable[RollupSlot]) -> None:
        """Load the packs of these targets' days."""
        wanted: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for target, kind, day in days:
            month = start_of(MONTH, day)
            wanted[kind].add((month, target))
            self._packs[target, kind, month] = _Pack()
        for kind, keys in wanted.items():
            for month, target, *values in await load_packs(session, kind, sorted(keys)):
                self._packs[target, kind, month] = _Pack(*values)

    def append(self, target: int, kind: int, day: int, deltas: Mapping[int, RollupDelta]) -> bool:
        """Add quarter hours of a day; return False if there is no room for them."""
        month = start_of(MONTH, day)
        pack = self._packs[target, kind, month]
        entries = [encode_entry(month, start, delta) for start, delta in deltas.items()]
        if None in entries:
            return False
        added = b"".join(entry for entry in entries if entry is not None)
        if len(pack.data) + len(added) > MAX_PACK_BYTES:
            return False
        pack.people += sum(delta.people for delta in deltas.values())
        pack.bots += sum(delta.bots for delta in deltas.values())
        pack.data += added
        pack.is_changed = True
        return True

    def remove(self, target: int, kind: int, day: int) -> dict[int, RollupDelta]:
        """Remove a day from its pack; return its quarter hours."""
        month = start_of(MONTH, day)
        pack = self._packs[target, kind, month]
        data, removed = split_pack(month, pack.data, [day])
        if removed:
            pack.people -= sum(delta.people for delta in removed.values())
            pack.bots -= sum(delta.bots for delta in removed.values())
            pack.data = data
            pack.is_changed = True
        return removed

    async def save(self, session: WriteSession) -> None:
        """Save the packs that have changed, in the order of their keys."""
        rows = [
            (month, target, kind, pack.people, pack.bots, pack.data)
            for (target, kind, month), pack in self._packs.items()
            if pack.is_changed
        ]
        if rows:
            await save_packs(session, sorted(rows))


async def expire_packs(rt: Runtime) -> int:
    """Turn packs of months whose days are no longer kept into months; return the batches."""
    return await write_in_slices(rt, _expire_batch)


async def _expire_batch(session: WriteSession) -> bool:
    state = await lock_progress(session)
    old = select(_PACKS).where(_PACKS.c.start < to_datetime(state.days_from))
    ordered = old.order_by(_PACKS.c.start, _PACKS.c.target_id, _PACKS.c.kind)
    packs = (await session.execute(ordered.limit(BATCH_SIZE))).all()
    if not packs:
        return False
    months = await _load_months(session, packs)
    for pack in packs:
        _add_pack(months[pack.target_id, pack.kind, MONTH, to_seconds(pack.start)], pack)
    rows = [(*key, *row.encode(key[1], pack=True)) for key, row in sorted(months.items())]
    await save_rollups(session, rows)
    targets: dict[tuple[Any, int], list[int]] = defaultdict(list)
    for pack in packs:
        targets[pack.start, pack.kind].append(pack.target_id)
    for (month, kind), ids in targets.items():
        same = _PACKS.c.start == month, _PACKS.c.kind == kind
        await session.execute(delete(_PACKS).where(*same, _PACKS.c.target_id.in_(ids)))
    await save_progress(session, replace(state, turn=state.turn + 1))
    return True


async def _load_months(
    session: WriteSession, packs: Iterable[Any]
) -> dict[tuple[int, int, int, int], RollupRow]:
    months = {
        (pack.target_id, pack.kind, MONTH, to_seconds(pack.start)): RollupRow() for pack in packs
    }
    for kind in {key[1] for key in months}:
        keys = sorted((start, target) for target, its_kind, _, start in months if its_kind == kind)
        for start, target, *values in await load_rollups(session, kind, MONTH, keys):
            months[target, kind, MONTH, start] = decode_row(*values)
    return months


def _add_pack(row: RollupRow, pack: Any) -> None:
    """Add a pack to its month, whose visitors are the sum of its days'."""
    whole = RollupDelta()
    visitors: dict[int, set[bytes]] = defaultdict(set)
    for start, delta in iter_entries(to_seconds(pack.start), pack.data):
        visitors[start_of(DAY, start)].update(delta.visitors)
        add_delta(whole, delta)
    row.add_clicks(whole)
    row.uniques += sum(map(len, visitors.values()))
