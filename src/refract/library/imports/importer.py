"""Rows become items, a batch per transaction. Importing the same rows again changes nothing."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select

from refract.core.db.bulk import insert_rows
from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.imports.models import ImportRow, ImportRun, ImportStatus, RowOutcome
from refract.imports.service import add_stored_rows, lock_import
from refract.jobs.cleanup import enqueue_statistics
from refract.library.imports.decisions import (
    RowDecision,
    SeenRows,
    classify_row,
    decide_rows,
    get_confirmed_at,
)
from refract.library.imports.rows import Bookmark, BookmarkRow, TagRow
from refract.library.imports.stored_rows import (
    build_page_row,
    from_stored_row,
    to_stored_row,
)
from refract.library.imports.tags import ensure_import_tags, tag_items
from refract.library.models import (
    Enrichment,
    FieldSource,
    Item,
    ItemStatus,
    ItemType,
    SavedPage,
)
from refract.library.recognition import RecognisedText, extract_first_line
from refract.library.search import index_items
from refract.library.service import storage

BATCH_SIZE = 200
MAX_BATCH_CHARACTERS = 256 * 1024
LIBRARY_FULL_MESSAGE = "Your library is full. Ask an administrator for more room."


async def add_import_rows(
    session: WriteSession, import_run: ImportRun, rows: Sequence[BookmarkRow]
) -> None:
    """Store rows of the file until they are imported."""
    await add_stored_rows(session, import_run, [to_stored_row(row) for row in rows])


async def import_batch(rt: Runtime, import_id: int) -> bool:
    """Import the next waiting rows and commit; return whether there may be more."""
    async with rt.db.write() as session:
        import_run = await lock_import(session, import_id)
        if import_run is None or import_run.status != ImportStatus.RUNNING:
            return False
        waiting = select(ImportRow).where(
            ImportRow.import_id == import_id, ImportRow.outcome == RowOutcome.WAITING
        )
        batch = _limit_batch(
            await session.scalars(waiting.order_by(ImportRow.number).limit(BATCH_SIZE))
        )
        if not batch:
            import_run.status, import_run.finished_at = ImportStatus.DONE, rt.clock.now()
            await enqueue_statistics(session, rt, import_run.total)
            return False
        rows = {
            row.number: from_stored_row(row.place, row.shown, row.why, row.content) for row in batch
        }
        decisions = await _create_items(session, rt, import_run, rows)
        for row in batch:
            decision = decisions[row.number]
            row.outcome, row.why, row.item_id, row.content = (
                decision.outcome,
                decision.why,
                decision.item_id,
                None,
            )
        outcomes = [decision.outcome for decision in decisions.values()]
        import_run.created += outcomes.count(RowOutcome.CREATED)
        import_run.existing += outcomes.count(RowOutcome.EXISTS)
        import_run.refused += outcomes.count(RowOutcome.REFUSED)
        return True


def _limit_batch(rows: Iterable[ImportRow]) -> list[ImportRow]:
    """Return the first row and those after it that fit into a batch.

    One may have a page of megabytes.
    """
    batch: list[ImportRow] = []
    size = 0
    for row in rows:
        size += len(row.content or "")
        if batch and size > MAX_BATCH_CHARACTERS:
            break
        batch.append(row)
    return batch


async def preview_rows(
    session: ReadSession,
    user_id: int,
    rows: Sequence[BookmarkRow],
    earlier: SeenRows,
    now: datetime,
) -> list[RowDecision]:
    """Return the outcome that the rows would have."""
    verdicts = await decide_rows(
        session,
        user_id,
        {number: classify_row(row) for number, row in enumerate(rows)},
        earlier,
        now,
    )
    return [verdicts[number] for number in range(len(rows))]


async def _create_items(
    session: WriteSession,
    rt: Runtime,
    import_run: ImportRun,
    rows: Mapping[int, BookmarkRow],
) -> dict[int, RowDecision]:
    now = rt.clock.now()
    classified = {number: classify_row(row) for number, row in rows.items()}
    decisions = await decide_rows(session, import_run.user_id, classified, SeenRows(), now)
    created = [
        number for number, decision in decisions.items() if decision.outcome is RowOutcome.CREATED
    ]
    bookmarks = {number: row for number in created if isinstance(row := rows[number], Bookmark)}
    tag_rows = [row for number in created if isinstance(row := rows[number], TagRow)]
    item_ids = dict(zip(bookmarks, rt.ids.next_ids(len(bookmarks)), strict=True))
    items = [
        _build_item(import_run, item_ids[number], row, classified[number].recognised, now)
        for number, row in bookmarks.items()
    ]
    pages = _build_pages(bookmarks, item_ids, now)
    stored = _measure_storage(items, pages)
    if not await storage.has_free_storage(session, rt, import_run.user_id, stored):
        decisions |= dict.fromkeys(bookmarks, RowDecision(RowOutcome.REFUSED, LIBRARY_FULL_MESSAGE))
        bookmarks, item_ids, items, pages, stored = {}, {}, [], [], storage.StorageUsage()
    tags = await ensure_import_tags(session, rt.ids, import_run, bookmarks, tag_rows, now)
    await insert_rows(session, Item, items)
    await insert_rows(session, SavedPage, pages)
    tags_by_item = {
        item_ids[number]: [tags[name].id for name in row.tags] for number, row in bookmarks.items()
    }
    await tag_items(session, tags_by_item, now)
    await index_items(session, list(item_ids.values()))
    await storage.adjust_usage(session, import_run.user_id, stored)
    return {
        number: (
            RowDecision(decision.outcome, decision.why, item_ids[number])
            if number in item_ids
            else decision
        )
        for number, decision in decisions.items()
    }


def _build_pages(
    bookmarks: Mapping[int, Bookmark], item_ids: Mapping[int, int], now: datetime
) -> list[dict[str, Any]]:
    rows = (
        build_page_row(item_ids[number], bookmark, now)
        for number, bookmark in bookmarks.items()
        if bookmark.page is not None
    )
    return [row for row in rows if row is not None]


def _measure_storage(
    items: Sequence[Mapping[str, Any]], pages: Sequence[Mapping[str, Any]]
) -> storage.StorageUsage:
    texts = storage.count_bytes(*(item[name] for item in items for name in ("text", "notes")))
    return storage.StorageUsage(
        len(items),
        texts + storage.count_bytes(*(page[name] for page in pages for name in ("text", "html"))),
    )


def _build_item(
    import_run: ImportRun,
    item_id: int,
    row: Bookmark,
    seen: RecognisedText | None,
    now: datetime,
) -> dict[str, Any]:
    if seen is None:
        problem = "a row that was not classified"
        raise ValueError(problem)
    title = row.title or (None if row.own else extract_first_line(row.text))
    status = ItemStatus.READY_TO_CONFIRM if row.waiting else ItemStatus.ARCHIVED
    return {
        "id": item_id,
        "user_id": import_run.user_id,
        "text": row.text,
        "url": seen.url,
        "url_digest": seen.url_digest,
        "canonical_digest": None,
        "site": seen.site,
        "title": title,
        "title_source": (FieldSource.USER if row.title else FieldSource.SYSTEM) if title else None,
        "summary": row.summary,
        "summary_source": FieldSource.USER if row.summary else None,
        "notes": row.notes,
        "unread": row.unread,
        "favorite": row.favorite,
        "archived": row.archived,
        "type": ItemType(seen.type),
        "status": status,
        "pending": row.waiting,
        "enrichment": Enrichment.MANUAL,
        "note": None,
        "failure": None,
        "job_id": None,
        "charged_job_id": None,
        "import_id": import_run.id,
        "created_at": min(row.created_at or row.confirmed_at or now, now),
        "updated_at": now,
        "confirmed_at": get_confirmed_at(row, now),
        "version": 1,
    }
