"""Rows become items, a batch in a transaction. Bringing the same rows again changes nothing."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Table, func, select, update

from refract.core.db import ReadSession, WriteSession
from refract.core.ids import IdSource
from refract.core.rows import insert_or_skip, insert_rows
from refract.core.runtime import Runtime
from refract.library import usage
from refract.library.capturing import Recognised, first_line
from refract.library.import_models import Import, ImportRow, ImportStatus, RowOutcome
from refract.library.importing.judging import Earlier, Verdict, confirmed, judge, weigh
from refract.library.importing.kept import KeptRow, keep_row, restore_row
from refract.library.importing.pages import page_row
from refract.library.importing.rows import Bookmark, BookmarkRow, TagRow
from refract.library.models import Enrichment, FieldSource, Item, ItemPage, ItemStatus, ItemTag, ItemType
from refract.library.search import reindex
from refract.tags import personal
from refract.tags.grammar import personal_key
from refract.tags.models import Tag, TagAlias
from refract.tags.service import count_use

BATCH = 200
BATCH_CHARACTERS = 256 * 1024
FULL = "Your library is full: ask an administrator for more room."


async def begin(session: WriteSession, rt: Runtime, user_id: int, kind: str, name: str | None) -> Import:
    """An import without rows so far."""
    one = Import(
        id=rt.ids.next_id(), user_id=user_id, kind=kind, name=name[:255] if name else None, status=ImportStatus.RUNNING, total=0, created=0,
        existing=0, refused=0, made_tags={"made": [], "revived": []}, created_at=rt.clock.now(), finished_at=None,
    )  # fmt: skip
    session.add(one)
    await session.flush()
    return one


async def add_rows(session: WriteSession, one: Import, rows: Sequence[BookmarkRow]) -> None:
    """Keep rows of the file until their turn comes."""
    await add_kept_rows(session, one, [keep_row(row) for row in rows])


async def add_kept_rows(session: WriteSession, one: Import, rows: Sequence[KeptRow]) -> None:
    """Store rows that were made ready in an extraction process."""
    waiting = {"import_id": one.id, "outcome": RowOutcome.WAITING, "item_id": None}
    numbered = [{**waiting, "number": number, **row._asdict()} for number, row in enumerate(rows, start=one.total + 1)]
    await insert_rows(session, cast("Table", ImportRow.__table__), numbered)
    one.total += len(rows)
    await session.flush()


async def bring_batch(rt: Runtime, import_id: int) -> bool:
    """Make items of the next waiting rows; whether there may be more. Committed when this returns."""
    async with rt.db.write() as session:
        one = await _held(session, import_id)
        if one is None or one.status != ImportStatus.RUNNING:
            return False
        waiting = select(ImportRow).where(ImportRow.import_id == import_id, ImportRow.outcome == RowOutcome.WAITING)
        some = _bounded(await session.scalars(waiting.order_by(ImportRow.number).limit(BATCH)))
        if not some:
            one.status, one.finished_at = ImportStatus.DONE, rt.clock.now()
            return False
        rows = {row.number: restore_row(row.place, row.shown, row.why, row.content) for row in some}
        verdicts = await _make(session, rt, one, rows)
        for row in some:
            verdict = verdicts[row.number]
            row.outcome, row.why, row.item_id, row.content = verdict.outcome, verdict.why, verdict.item_id, None
        outcomes = [verdict.outcome for verdict in verdicts.values()]
        one.created += outcomes.count(RowOutcome.CREATED)
        one.existing += outcomes.count(RowOutcome.EXISTS)
        one.refused += outcomes.count(RowOutcome.REFUSED)
        return True


def _bounded(rows: Iterable[ImportRow]) -> list[ImportRow]:
    """Return the first row, and those behind it that are not too much for one batch: one may carry a page of megabytes."""
    some: list[ImportRow] = []
    size = 0
    for row in rows:
        size += len(row.content or "")
        if some and size > BATCH_CHARACTERS:
            break
        some.append(row)
    return some


async def try_out(session: ReadSession, user_id: int, rows: Sequence[BookmarkRow], earlier: Earlier, now: datetime) -> list[Verdict]:
    """What would become of the rows."""
    verdicts = await judge(session, user_id, {number: weigh(row) for number, row in enumerate(rows)}, earlier, now)
    return [verdicts[number] for number in range(len(rows))]


async def _held(session: WriteSession, import_id: int) -> Import | None:
    """The import, which nobody else goes on with until this transaction ends."""
    row = select(Import).where(Import.id == import_id).with_for_update().execution_options(populate_existing=True)
    return cast("Import | None", await session.scalar(row))


async def _make(session: WriteSession, rt: Runtime, one: Import, rows: Mapping[int, BookmarkRow]) -> dict[int, Verdict]:
    now = rt.clock.now()
    weighed = {number: weigh(row) for number, row in rows.items()}
    verdicts = await judge(session, one.user_id, weighed, Earlier(), now)
    created = [number for number, verdict in verdicts.items() if verdict.outcome is RowOutcome.CREATED]
    bookmarks = {number: row for number in created if isinstance(row := rows[number], Bookmark)}
    tag_rows = [row for number in created if isinstance(row := rows[number], TagRow)]
    numbers = dict(zip(bookmarks, rt.ids.next_ids(len(bookmarks)), strict=True))
    made = [_item(one, numbers[number], row, weighed[number].recognised, now) for number, row in bookmarks.items()]
    asked = (page_row(numbers[number], row, now) for number, row in bookmarks.items() if row.page is not None)
    pages = [page for page in asked if page is not None]
    stored = _measure(made, pages)
    if not await usage.has_room(session, rt, one.user_id, stored):
        verdicts |= dict.fromkeys(bookmarks, Verdict(RowOutcome.REFUSED, FULL))
        bookmarks, numbers, made, pages, stored = {}, {}, [], [], usage.Stored()
    tags = await _tags(session, rt.ids, one, bookmarks, tag_rows, now)
    await insert_rows(session, cast("Table", Item.__table__), made)
    await insert_rows(session, cast("Table", ItemPage.__table__), pages)
    await _wear(session, {numbers[number]: [tags[name].id for name in row.tags] for number, row in bookmarks.items()}, now)
    await reindex(session, list(numbers.values()))
    await usage.count_in(session, one.user_id, stored)
    return {
        number: Verdict(verdict.outcome, verdict.why, numbers[number]) if number in numbers else verdict
        for number, verdict in verdicts.items()
    }


def _measure(items: Sequence[Mapping[str, Any]], pages: Sequence[Mapping[str, Any]]) -> usage.Stored:
    texts = usage.size_of(*(item["text"] for item in items))
    return usage.Stored(len(items), texts + usage.size_of(*(page[name] for page in pages for name in ("text", "html"))))


def _item(one: Import, item_id: int, row: Bookmark, seen: Recognised | None, now: datetime) -> dict[str, Any]:
    if seen is None:
        problem = "a row that was not weighed"
        raise ValueError(problem)
    title = row.title or (None if row.own else first_line(row.text))
    status = ItemStatus.READY_TO_CONFIRM if row.waiting else ItemStatus.ARCHIVED
    return {
        "id": item_id, "user_id": one.user_id, "text": row.text, "url": seen.url, "url_digest": seen.url_digest, "canonical_digest": None,
        "site": seen.site, "title": title, "title_source": (FieldSource.USER if row.title else FieldSource.SYSTEM) if title else None,
        "summary": row.summary, "summary_source": FieldSource.USER if row.summary else None, "type": ItemType(seen.type), "status": status,
        "pending": row.waiting, "enrichment": Enrichment.MANUAL, "note": None, "failure": None, "job_id": None, "charged_job_id": None,
        "import_id": one.id, "created_at": min(row.created_at or row.confirmed_at or now, now), "updated_at": now,
        "confirmed_at": confirmed(row, now), "version": 1,
    }  # fmt: skip


async def _tags(
    session: WriteSession, ids: IdSource, one: Import, bookmarks: Mapping[int, Bookmark], tag_rows: Sequence[TagRow], now: datetime
) -> dict[str, Tag]:
    """All tags that the rows name. Those that are new because of this import are noted, for its roll-back."""
    names = list(dict.fromkeys([*(name for row in bookmarks.values() for name in row.tags), *(row.name for row in tag_rows)]))
    if not names:
        return {}
    before = await personal.by_key(session, one.user_id, {personal_key(name) for name in names})
    gone = {tag.id for tag in before.values() if tag.deleted_at is not None}
    found = await personal.ensure(session, ids, one.user_id, names, now)
    known = {tag.id for tag in before.values()}
    made = sorted({tag.id for tag in found.values()} - known)
    one.made_tags = {
        "made": [*one.made_tags["made"], *map(str, made)],
        "revived": [*one.made_tags["revived"], *(str(number) for number in sorted({tag.id for tag in found.values()} & gone))],
    }
    for row in tag_rows:
        if found[row.name].id in made:
            found[row.name].color = row.color
        await _aliases(session, one.user_id, found[row.name], row, now)
    await session.flush()
    return found


async def _aliases(session: WriteSession, user_id: int, tag: Tag, row: TagRow, now: datetime) -> None:
    """Names that meant the tag where it comes from mean it here, unless they mean something already."""
    keys = {personal_key(alias): alias for alias in row.aliases}
    taken = await personal.by_key(session, user_id, keys)
    fresh = [
        {"space": user_id, "key": key, "tag_id": tag.id, "name": keys[key], "created_at": now} for key in sorted(set(keys) - set(taken))
    ]
    await insert_or_skip(session, cast("Table", TagAlias.__table__), fresh)


async def _wear(session: WriteSession, wanted: Mapping[int, Sequence[int]], now: datetime) -> None:
    """Tags on items that nobody else knows of yet. What was deleted in this very moment is left out."""
    numbers = {tag_id for tag_ids in wanted.values() for tag_id in tag_ids}
    if not numbers:
        return
    owner = await session.scalar(select(Item.user_id).where(Item.id == next(iter(wanted))))
    held = await personal.hold(session, int(owner or 0), numbers)
    live = {tag_id for tag_id, tag in held.items() if tag.deleted_at is None}
    rows = [
        {"item_id": item_id, "tag_id": tag_id, "created_at": now}
        for item_id, tag_ids in wanted.items()
        for tag_id in sorted(set(tag_ids) & live)
    ]
    await insert_rows(session, cast("Table", ItemTag.__table__), rows)
    counts: dict[int, int] = {}
    for row in rows:
        counts[int(row["tag_id"])] = counts.get(int(row["tag_id"]), 0) + 1  # type: ignore[call-overload]
    await count_use(session, counts, now)


async def stop(session: WriteSession, one: Import, now: datetime) -> Import:
    """Go no further; what is done stays."""
    held = await _held(session, one.id) or one
    if held.status == ImportStatus.RUNNING:
        held.status, held.finished_at = ImportStatus.STOPPED, now
        left = update(ImportRow).where(ImportRow.import_id == one.id, ImportRow.outcome == RowOutcome.WAITING).values(content=None)
        await session.execute(left.execution_options(synchronize_session=False))
    return held


async def left_over(session: ReadSession, import_id: int) -> int:
    waiting = select(func.count()).where(ImportRow.import_id == import_id, ImportRow.outcome == RowOutcome.WAITING)
    return await session.scalar(waiting) or 0
