"""Roll-back of an import of links: those that it created and that are unchanged since."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, delete, exists, or_, select, true, update

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.imports.models import ImportRow, ImportRun, ImportStatus, RowOutcome
from refract.imports.service import lock_import
from refract.links.models import Link, LinkChange, LinkTag
from refract.links.service import purge_chosen_links
from refract.links.service.team_rows import lock_owning_teams
from refract.tags.models import Tag

BATCH_SIZE = 200
KEPT_MESSAGE = "Changed here since, so it was kept."
_BY_SYSTEM = 0
"""The actor of changes that nobody made: safety checks."""


async def roll_back_batch(rt: Runtime, import_id: int) -> bool:
    """Remove some links of an import and commit; return whether there may be more."""
    async with rt.db.write() as session:
        locked = await lock_import(session, import_id)
        if locked is None or locked.status != ImportStatus.ROLLING_BACK:
            return False
        created = select(ImportRow.item_id).where(
            ImportRow.import_id == import_id, ImportRow.outcome == RowOutcome.CREATED
        )
        link_ids = [
            link_id
            for link_id in await session.scalars(
                created.order_by(ImportRow.number).limit(BATCH_SIZE)
            )
            if link_id is not None
        ]
        if link_ids:
            await _remove_links(session, rt, locked, link_ids)
            return True
        await _finish(session, rt, locked)
        return False


async def _remove_links(
    session: WriteSession, rt: Runtime, locked: ImportRun, link_ids: Collection[int]
) -> None:
    # Locked first, in the order of every other writer: whoever edits one now is waited for.
    locked_teams = await lock_owning_teams(session, sorted(link_ids))
    chosen = select(Link.id).where(Link.id.in_(link_ids)).order_by(Link.id)
    await session.execute(chosen.with_for_update())
    await lock_owning_teams(session, sorted(link_ids), locked=locked_teams)
    changed = set(
        await session.scalars(
            select(ImportRow.item_id).where(
                ImportRow.import_id == locked.id,
                ImportRow.item_id.in_(link_ids),
                _is_changed_by_hand(),
            )
        )
    )
    rest = sorted(set(link_ids) - changed)
    if rest:
        await _note_tags(session, locked, rest)
        await purge_chosen_links(session, rest, rt.clock.now(), true())
    rows = update(ImportRow).where(ImportRow.import_id == locked.id)
    gone = {"outcome": RowOutcome.WAITING, "item_id": None, "version": None}
    no_sync = {"synchronize_session": False}
    await session.execute(
        rows.where(ImportRow.item_id.in_(rest)).values(**gone).execution_options(**no_sync)
    )
    await session.execute(
        rows.where(ImportRow.item_id.in_(changed))
        .values(outcome=RowOutcome.KEPT, why=KEPT_MESSAGE)
        .execution_options(**no_sync)
    )
    locked.kept += len(changed)
    await session.flush()


def _is_changed_by_hand() -> ColumnElement[bool]:
    """Return the condition that the link of a row was changed by hand after it was imported."""
    by_hand = or_(LinkChange.actor_id.is_(None), LinkChange.actor_id != _BY_SYSTEM)
    return exists().where(
        and_(
            LinkChange.link_id == ImportRow.item_id,
            LinkChange.version > ImportRow.version,
            by_hand,
        )
    )


async def _note_tags(session: WriteSession, locked: ImportRun, link_ids: Collection[int]) -> None:
    """Remember tags of these links that are as new as the import."""
    new = (
        select(Tag.id)
        .join(LinkTag, LinkTag.tag_id == Tag.id)
        .where(LinkTag.link_id.in_(link_ids), Tag.created_at >= locked.created_at)
        .distinct()
    )
    made = {*locked.made_tags["made"], *map(str, await session.scalars(new))}
    locked.made_tags = {**locked.made_tags, "made": sorted(made)}


async def _finish(session: WriteSession, rt: Runtime, locked: ImportRun) -> None:
    """Delete the tags that nothing uses any more, and all rows but those of links that stay."""
    made = [int(number) for number in locked.made_tags["made"]]
    unused = update(Tag).where(Tag.id.in_(made), Tag.usage_count == 0)
    await session.execute(
        unused.values(deleted_at=rt.clock.now()).execution_options(synchronize_session=False)
    )
    rest = delete(ImportRow).where(
        ImportRow.import_id == locked.id, ImportRow.outcome != RowOutcome.KEPT
    )
    await session.execute(rest.execution_options(synchronize_session=False))
    locked.status, locked.finished_at = ImportStatus.ROLLED_BACK, rt.clock.now()
