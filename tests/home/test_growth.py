"""No page or call does more work when there is more data: steps of SQLite, not seconds.

SQLite counts the instructions of its virtual machine. Every statement of every call in
`bench/growth.py` runs again on a connection that counts them, on two databases.
"""

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from bench.growth import BAR, FilledInstance, GrowthCall, list_calls, open_instance
from refract.admin import overview as admin_overview
from refract.library.queries import browse as library_browse
from refract.links.queries import candidates, facets
from refract.links.queries import links as link_queries
from refract.names import queries as names

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
