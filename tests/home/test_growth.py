"""No page or call does more work when there is more data: steps of SQLite, not seconds.

SQLite counts the instructions of its virtual machine. Every statement of every call in
`bench/growth.py` runs again on a connection that counts them, on two databases. On database servers
the lists that their planners once sorted as a whole are asked, and the rows counted that they read.
"""

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from bench._growth_data import DataSet, GrowthFiller
from bench.growth import BAR, FilledInstance, GrowthCall, list_calls, open_instance
from refract.admin import overview as admin_overview
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.library.queries import browse as library_browse
from refract.links.access import LinkCaller
from refract.links.jobs import AssignOwners, assign_owners
from refract.links.queries import LinkFilter, LinkSort, candidates, facets, load_links_page
from refract.links.queries import links as link_queries
from refract.names import queries as names
from tests.client import on_servers
from tests.plans import Question, count_rows_read

LINKS = 6_000
FACTOR = 3
BOUND = 50
"""Instead of the bounds below which all is sorted or counted, so that both sizes exceed them."""
BOUNDS = (
    (admin_overview, "MAX_COUNTED"),
    (candidates, "MAX_CANDIDATES"),
    (facets, "MAX_COUNTED"),
    (library_browse, "MAX_COUNTED"),
    (library_browse, "MAX_PARAMETERS"),
    (link_queries, "_MAX_CANDIDATES"),
    (names, "_MAX_SIMILAR"),
)
MAX_ROWS = 20 * BOUND
"""Rows that a server may read for a page of a list; there are 2,400 own links and 480 items."""
ANALYZE_ON_MARIADB = "ANALYZE TABLE links, link_owners, link_tags, link_totals, items, item_tags"
RESOLUTION = 10
MIN_STEPS = 5_000
"""Steps below which a difference does not matter."""
GROWING = (
    # Reads the lists of all users, or all tags, for a word.
    r"root /api/v1/admin/lists\?.*q=",
    r"bob /api/v1/tags\?.*q=",
)
"""Calls that are known to grow, and why."""


async def _count_steps(instance: FilledInstance, call: GrowthCall, path: Path) -> int:
    """Return the steps of all queries of a call."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if statement.startswith(("SELECT", "WITH")):
            asked.append((statement, parameters))

    engine = instance.rt.db.read_engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    _, status = await instance.measure(call)
    event.remove(engine, "before_cursor_execute", note)
    assert status == 200 or call.path.endswith("-"), (call.label, status)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += RESOLUTION
        return 0

    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.set_progress_handler(count, RESOLUTION)
    for statement, parameters in asked:
        connection.execute(statement, parameters).fetchall()
    connection.close()
    return steps


async def test_no_call_takes_more_steps_with_more_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in BOUNDS:
        monkeypatch.setattr(module, name, BOUND)
    steps: list[dict[str, int]] = []
    for name, links in (("small", LINKS), ("big", LINKS * FACTOR)):
        async with open_instance("sqlite", tmp_path, name, links) as instance:
            path = tmp_path / name / "refract.db"
            calls = list_calls(*instance.words)
            steps.append(
                {
                    f"{number} {call.caller} {call.path}": await _count_steps(instance, call, path)
                    for number, call in enumerate(calls)
                }
            )
    small, big = (list(counts.values()) for counts in steps)
    grown = {
        label: (before, after)
        for label, before, after in zip(steps[0], small, big, strict=True)
        if after > max(MIN_STEPS, before) * BAR
        and not re.match("|".join(GROWING), label.split(" ", 1)[1])
    }
    assert not grown, "\n".join(f"{label}: {steps}" for label, steps in grown.items())


def _list_orders(rt: Runtime, data: DataSet) -> dict[str, Question]:
    """Return lists that follow an index until a page is full."""
    cursors, now = CursorCodec(rt.secret), rt.clock.now()

    def links(user_id: int, **asked: Any) -> Question:
        caller, chosen = LinkCaller(user_id), LinkFilter(**asked)
        return lambda session: load_links_page(
            session, cursors, caller, chosen, now, limit=10, cursor=None
        )

    def library(**asked: Any) -> Question:
        chosen = library_browse.LibraryFilter(data.ada, **asked)
        return lambda session: library_browse.list_items(
            session, cursors, chosen, limit=10, cursor=None
        )

    return {
        "never clicked, by clicks": links(data.bob, sort=LinkSort.CLICKS),
        "by updates": links(data.ada, sort=LinkSort.UPDATED),
        "a frequent tag": links(data.ada, tags=("Tag 0",)),
        "an absent word": links(data.ada, q="zzzabsent"),
        "library": library(),
        "library, a frequent tag": library(tags=("Mine 0",)),
        "library, untagged": library(untagged=True),
    }


@on_servers
async def test_lists_on_servers_are_read_until_a_page_is_full(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in BOUNDS:
        monkeypatch.setattr(module, name, BOUND)
    data = await GrowthFiller(rt, LINKS).fill()
    await assign_owners(rt, AssignOwners())
    async with rt.db.engine.connect() as connection:
        statement = "ANALYZE" if rt.db.dialect == "postgresql" else ANALYZE_ON_MARIADB
        await connection.execute(text(statement))
        await connection.commit()

    rows = {
        name: await count_rows_read(rt, question)
        for name, question in _list_orders(rt, data).items()
    }

    assert all(count < MAX_ROWS for count in rows.values()), rows
