"""No query of items reads a whole table, and a long page needs as many queries as a short one."""

from typing import Any

from sqlalchemy import select, text

from refract.core.db.bulk import insert_rows, iter_batches
from refract.core.db.session import ReadSession, count_statements
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.enrichment.background import load_background
from refract.library.models import Item, ItemStatus, ItemTag, SavedPage, Suggestion
from refract.library.queries import items as queries_items
from refract.library.queries.serializers import serialize_items
from refract.library.service import quota
from refract.tags.models import Tag
from tests import make
from tests.plans import Question, assert_no_scans

COUNT, PEOPLE = 20_000, 200
BIG = {"items", "item_tag_suggestions", "item_tags", "item_pages", "usage_ledger"}


async def fill_items(rt: Runtime) -> tuple[User, list[int]]:
    """Create items of many users, a third of them pending, each with a suggestion and a page."""
    states = (ItemStatus.ARCHIVED, ItemStatus.READY_TO_CONFIRM, ItemStatus.DISCARDED)
    now = rt.clock.now()
    async with rt.db.write() as session:
        people = [await make.person(session, rt, f"person{number}") for number in range(PEOPLE)]
    ids = list(range(1_000, 1_000 + COUNT))
    items = [
        {
            "id": number,
            "user_id": people[number % PEOPLE].id,
            "text": f"https://example.com/{number}",
            "url_digest": f"{number:032x}",
            "canonical_digest": f"{number:032x}",
            "type": "ARTICLE",
            "status": states[number // PEOPLE % 3].value,
            "pending": number // PEOPLE % 3 == 1,
            "created_at": now,
            "updated_at": now,
            "confirmed_at": now,
            "version": 1,
        }
        for number in ids
    ]
    suggestions = [
        {
            "id": number,
            "user_id": people[number % PEOPLE].id,
            "item_id": number,
            "name": f"n{number}",
            "normalised_name": f"n{number}",
            "source": "AI",
            "confidence": 0.5,
            "reason": "r",
            "status": "REJECTED" if number % 9 == 0 else "PENDING",
            "created_at": now,
        }
        for number in ids
    ]
    tags = [
        {
            "id": number,
            "scope": "personal",
            "owner_id": one.id,
            "space": one.id,
            "key": "t",
            "name": "t",
            "name_key": "t",
            "color": "#6B7280",
            "usage_count": 1,
            "created_at": now,
        }
        for number, one in enumerate(people, 1)
    ]
    borne = [
        {"item_id": number, "tag_id": number % PEOPLE + 1, "created_at": now} for number in ids
    ]
    pages = [
        {"item_id": number, "url": "u", "keywords": [], "text": "", "html": "", "fetched_at": now}
        for number in ids
    ]
    async with rt.db.write() as session:
        filled: list[tuple[Any, list[dict[str, Any]]]] = [
            (Tag, tags),
            (Item, items),
            (Suggestion, suggestions),
            (SavedPage, pages),
            (ItemTag, borne),
        ]
        for model, rows in filled:
            for some in iter_batches(rows, 2_000):
                await insert_rows(session, model, some)
    await _analyse(rt)
    return people[0], [number for number in ids if number % PEOPLE == 0]


async def _analyse(rt: Runtime) -> None:
    words = {
        "sqlite": ["ANALYZE"],
        "postgresql": ["ANALYZE"],
        "mysql": [f"ANALYZE TABLE {table}" for table in sorted(BIG)],
    }
    async with rt.db.engine.connect() as connection:
        for word in words[rt.db.dialect]:
            await connection.execute(text(word))
        await connection.commit()


def _questions(rt: Runtime, ada: User, mine: list[int]) -> dict[str, Question]:
    cursors = CursorCodec(rt.secret)

    async def pending(session: ReadSession) -> None:
        first = await queries_items.list_pending_items(
            session, cursors, ada.id, status=None, limit=20, cursor=None
        )
        assert first.next_cursor
        await queries_items.list_pending_items(
            session, cursors, ada.id, status=None, limit=20, cursor=first.next_cursor
        )

    async def cards(session: ReadSession) -> None:
        await serialize_items(
            session, (await session.scalars(select(Item).where(Item.id.in_(mine[:20])))).all()
        )

    return {
        "seed_004 pending queue (idx_items_user_pending)": pending,
        "one item": lambda session: queries_items.get_own_item(session, ada.id, mine[0]),
        "cards with tags, suggestions and duplicates": cards,
        "what an enrichment starts from": lambda session: load_background(session, ada.id, mine[0]),
        "rules": lambda session: queries_items.list_tag_rules(session, ada.id),
        "quota": lambda session: quota.get_balance(session, rt, ada),
    }


async def test_no_question_reads_a_whole_table(rt: Runtime) -> None:
    ada, mine = await fill_items(rt)
    await assert_no_scans(rt, _questions(rt, ada, mine), BIG)

    counts = []
    for size in (5, 30):
        seen: list[str] = []
        stop = count_statements(rt.db.read_engine, seen.append)
        async with rt.db.read() as session:
            page = await queries_items.list_pending_items(
                session, CursorCodec(rt.secret), ada.id, status=None, limit=size, cursor=None
            )
            assert len(await serialize_items(session, page.items)) == size
        stop()
        counts.append(len([one for one in seen if one.startswith("SELECT")]))
    assert counts[0] == counts[1] <= 7
