"""No query of links reads a whole table, shown by the databases' plans on many links."""

import re
from datetime import timedelta
from typing import Any

from refract.core.clock import ManualClock
from refract.core.db.session import ReadSession
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import queries, service
from refract.links.access import LinkCaller, load_access
from refract.links.enums import LinkState
from refract.links.models import Link
from refract.links.queries import LinkFilter, LinkSort, OwnerFilter
from refract.names import queries as name_queries
from refract.names import service as names
from refract.names.enums import NameTarget
from refract.tags.queries import TagSort, load_tags_page
from tests import make
from tests.links.many_links import COUNTS, STEP, insert_many_links
from tests.plans import (
    Question,
    assert_no_scans,
    count_rows_read,
    find_scans,
    record_statements,
)

MAX_ROWS = 7_500
"""Rows that a server may read to find words: a few times the bound of sorted links."""
BIG = {"links", "names", "link_owners", "link_totals", "link_tags", "link_history", "list_entries"}


def _questions(rt: Runtime, ada: User, first: int) -> dict[str, Question]:
    """Return every query that looks for links. The seeds' own queries are among them, by name."""
    now, who, admin = rt.clock.now(), LinkCaller(ada.id), LinkCaller(ada.id, is_admin=True)
    cursors = CursorCodec(rt.secret)

    def page(asker: LinkCaller, **asked: Any) -> Question:
        async def read(session: ReadSession) -> None:
            question = LinkFilter(**asked)
            first_page = await queries.load_links_page(
                session, cursors, asker, question, now, limit=50, cursor=None
            )
            if first_page.next_cursor:
                await queries.load_links_page(
                    session, cursors, asker, question, now, limit=50, cursor=first_page.next_cursor
                )

        return read

    found: dict[str, Question] = {
        f"{owner} by {sort}": page(
            admin if owner is OwnerFilter.ALL else who, owner=owner, sort=sort
        )
        for owner in OwnerFilter
        for sort in LinkSort
        if owner is not OwnerFilter.PUBLIC or sort not in queries.CLICK_SORTS
    }
    for state in LinkState:
        found[f"mine, {state}"] = page(who, status=state)
        found[f"seed_001 idx_urls_status: all, {state}"] = page(
            admin, owner=OwnerFilter.ALL, status=state
        )
    return found | {
        "seed_001 dashboard (idx_urls_creator)": page(who),
        "mine with a tag": page(who, tags=("T3",)),
        "all with a tag": page(admin, owner=OwnerFilter.ALL, tags=("T3",)),
        "mine, searched": page(who, q="words 12"),
        # Of a frequent word the first thousand links are read, in any order.
        "public, searched": page(who, owner=OwnerFilter.PUBLIC, q="words 1234"),
        "mine of a day": page(who, created_after=now, created_before=now + timedelta(days=1)),
        "all of a day by update": page(
            admin, owner=OwnerFilter.ALL, sort=LinkSort.UPDATED, created_after=now
        ),
        "seed_001 redirect by code, seed_003 by name": lambda session: queries.resolve_name(
            session, "abc-77."
        ),
        "cards": lambda session: _cards(session, [first + number * STEP for number in range(3)]),
        "standing": lambda session: _standing(session, who, first),
        "find if exists": lambda session: queries.find_live_links(
            session, ada.id, ["digest-100", "digest-200"], now
        ),
        "did you mean, for a stranger": lambda session: queries.suggest_similar_names(
            session, "roadmapp", None, now
        ),
        "did you mean, for somebody": lambda session: queries.suggest_similar_names(
            session, "abc-771", who, now
        ),
        "is the name free": lambda session: names.check_availability(
            session, make.space(rt), "onboarding", NameTarget.LINK
        ),
        "free codes": lambda session: names.allocate_ids(session, make.space(rt), 100),
        "names of links": lambda session: name_queries.list_names(
            session, NameTarget.LINK, [first]
        ),
        "shared tags": lambda session: load_tags_page(
            session,
            cursors,
            [queries.is_visible_tag(who)],
            ada.id,
            q=None,
            sort=TagSort.NAME,
            limit=10,
            cursor=None,
        ),
        "owners": lambda session: queries.list_owners(session, first),
        "shares": lambda session: queries.list_shares(session, first),
        "history": lambda session: queries.list_versions(session, first, 50),
    }


async def _cards(session: ReadSession, ids: list[int]) -> None:
    links = [await session.get_one(Link, number) for number in ids]
    await queries.load_cards(session, links)


async def _standing(session: ReadSession, who: LinkCaller, link_id: int) -> None:
    await load_access(session, who, await session.get_one(Link, link_id))


async def test_no_question_reads_a_whole_table(rt: Runtime, clock: ManualClock) -> None:
    ada, first = await insert_many_links(rt)
    clock.advance(COUNTS[rt.db.dialect])
    await assert_no_scans(rt, _questions(rt, ada, first), BIG)
    if rt.db.dialect != "sqlite":  # whose steps are counted in `tests/home/test_growth.py`
        await _words_are_found_by_reading_few_rows(rt, ada)
    await _jobs_read_no_whole_table(rt)


async def _words_are_found_by_reading_few_rows(rt: Runtime, ada: User) -> None:
    """Check frequent, rare and absent words: not one reads all links in the order of the list."""
    cursors, admin = CursorCodec(rt.secret), LinkCaller(ada.id, is_admin=True)
    for word in ("words", "ord", "9999", "words 12345", "absent"):
        asked = LinkFilter(owner=OwnerFilter.ALL, q=word)
        rows = await count_rows_read(
            rt,
            lambda session, asked=asked: queries.load_links_page(  # type: ignore[misc]
                session, cursors, admin, asked, rt.clock.now(), limit=10, cursor=None
            ),
        )
        assert rows < MAX_ROWS, word


async def _jobs_read_no_whole_table(rt: Runtime) -> None:
    """Check the jobs that mark expired rows and purge, with the updates they make.

    The seeds have idx_urls_expires_at and idx_links_expires for it.
    """
    with record_statements(rt.db.engine) as asked:
        async with rt.db.write() as session:
            now = rt.clock.now()
            assert await service.mark_expired(session, now, limit=50) == 50
            assert await service.purge_links(session, now, timedelta(seconds=10), limit=50) == 50
    scans = {
        statement: found
        for statement, parameters in asked
        if re.match("SELECT|UPDATE|DELETE", statement)
        and not isinstance(parameters, list)
        and (found := await find_scans(rt, statement, parameters, BIG))
    }
    assert scans == {}
