"""Rejected statistics requests, numbers of queries, and query plans."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import event, text

from refract.clicks import stats
from refract.clicks.models import ClickRollup, RollupState
from refract.clicks.rollups.granularity import DAY, GRAIN_SECONDS, HOUR, QUARTER, to_datetime
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.stats import StatsQuery, events
from refract.core.clock import ManualClock
from refract.core.db.bulk import insert_rows
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service as links
from refract.links.enums import Visibility
from tests import make
from tests.clicks.archiving import TABLE
from tests.clicks.archiving import event as click_event
from tests.client import by_key, on_sqlite

BAD = [
    ({"from": "yesterday"}, "VALIDATION_FAILED", "from"),
    ({"from": "2026-02-30"}, "VALIDATION_FAILED", "from"),
    ({"from": "1717243200"}, "VALIDATION_FAILED", "from"),
    ({"to": "2026-05-01T00:00:00"}, "VALIDATION_FAILED", "to"),
    ({"from": "2026-05-02", "to": "2026-05-02"}, "INVALID_RANGE", "from"),
    ({"from": "2026-05-03", "to": "2026-05-02"}, "INVALID_RANGE", "from"),
    ({"from": "0001-01-01"}, "INVALID_RANGE", "from"),
    ({"to": "9999-12-31T23:59:59Z"}, "INVALID_RANGE", "from"),
    ({"tz": "Mars/Olympus"}, "UNKNOWN_TIME_ZONE", "tz"),
    ({"tz": "../../etc/passwd"}, "UNKNOWN_TIME_ZONE", "tz"),
    ({"tz": ""}, "UNKNOWN_TIME_ZONE", "tz"),
    ({"tz": "x" * 65}, "VALIDATION_FAILED", "tz"),
]
OF_SERIES = [
    ({"granularity": "minute"}, "VALIDATION_FAILED", "granularity"),
    ({"compare": "perhaps"}, "VALIDATION_FAILED", "compare"),
    ({"from": "2019-01-01", "to": "2026-01-01"}, "TOO_MANY_POINTS", "granularity"),
]
OF_VALUES = [
    ({"limit": "0"}, "VALIDATION_FAILED", "limit"),
    ({"limit": "1001"}, "VALIDATION_FAILED", "limit"),
]


@pytest.fixture
async def mine(rt: Runtime, ada: User) -> tuple[int, dict[str, str]]:
    async with rt.db.write() as session:
        return (await make.link(session, rt, ada)).id, by_key(await make.key(session, rt, ada))


@on_sqlite
async def test_what_does_not_fit_is_refused_by_name(
    client: AsyncClient, mine: tuple[int, dict[str, str]]
) -> None:
    link, headers = mine
    series, values = (
        [f"/links/{link}/stats", "/stats"],
        [f"/links/{link}/stats/countries", "/stats/countries"],
    )
    asked = [(path, case) for path in series for case in BAD + OF_SERIES] + [
        (path, case) for path in values for case in BAD + OF_VALUES
    ]
    asked += [
        (f"/links/{link}/stats/export", case)
        for case in [*BAD, ({"format": "xlsx"}, "VALIDATION_FAILED", "format")]
    ]
    for path, (query, code, field) in asked:
        response = await client.get(f"/api/v1{path}", params=query, headers=headers)
        problem = response.json()
        assert (response.status_code, problem["code"]) == (422, code), (path, query, problem)
        assert [one["field"].rpartition(".")[2] for one in problem["errors"]] == [field], (
            path,
            query,
            problem,
        )


@on_sqlite
async def test_unknown_dimensions_and_links(
    client: AsyncClient, mine: tuple[int, dict[str, str]]
) -> None:
    link, headers = mine
    assert (
        await client.get(f"/api/v1/links/{link}/stats/planets", headers=headers)
    ).status_code == 422
    assert (
        await client.get("/api/v1/stats/sources", headers=headers)
    ).status_code == 422  # only of one link
    for path in ("", "/countries", "/terms", "/export", "/live"):
        response = await client.get(
            f"/api/v1/links/123{(path and '/stats' + path) or '/stats'}", headers=headers
        )
        assert (response.status_code, response.json()["code"]) == (404, "LINK_NOT_FOUND")


@on_sqlite
async def test_a_public_link_shows_its_figures_to_those_it_is_shared_with(
    rt: Runtime, client: AsyncClient, ada: User, bob: User, cleo: User
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada, visibility=Visibility.PUBLIC)
        await links.share_link(session, make.who(ada), link.id, bob.email, rt.clock.now())
        keys = [by_key(await make.key(session, rt, person)) for person in (bob, cleo)]
    answers = [
        (await client.get(f"/api/v1/links/{link.id}/stats", headers=key)).status_code
        for key in keys
    ]
    assert answers == [200, 403]


async def fill(rt: Runtime, link_ids: list[int], days: int) -> None:
    """Create roll-ups of some days, every hour and quarter, as if all hours were closed."""
    now = int(rt.clock.now().timestamp())
    today = now // GRAIN_SECONDS[DAY] * GRAIN_SECONDS[DAY]
    rows = [
        {
            "target_id": link,
            "kind": LINK_CLICK,
            "grain": grain,
            "start": to_datetime(start),
            "people": 2,
            "bots": 1,
            "private": 0,
            "uniques": 1,
        }
        for link in link_ids
        for grain in (QUARTER, HOUR, DAY)
        for start in range(today - days * GRAIN_SECONDS[DAY], now, GRAIN_SECONDS[grain])
    ]
    state = {
        "id": 1,
        "turn": 1,
        "closed_until": to_datetime(now // 3600 * 3600),
        "outlived": 0,
    }
    state |= dict.fromkeys(("quarters_from", "days_from", "months_from"), to_datetime(0))
    async with rt.db.write() as session:
        await insert_rows(session, ClickRollup, rows)
        await insert_rows(session, RollupState, [state])


async def test_a_dashboard_takes_few_questions_at_any_size(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        some = [(await make.link(session, rt, ada)).id for _ in range(3)]
    await fill(rt, some, 4)
    now, who = rt.clock.now(), make.who(ada)

    async def questions(*calls: Any) -> int:
        asked: list[str] = []
        stop = count_statements(rt.db.read_engine, asked.append)
        for call in calls:
            async with rt.db.read() as session:
                await call(session)
        stop()
        return len([one for one in asked if one.lstrip().upper().startswith("SELECT")])

    for zone in ("UTC", "Asia/Kolkata"):
        asked = StatsQuery(tz=zone, compare=True)
        assert await questions(
            lambda session: stats.require_stats_access(session, who, some[0]),
            lambda session, asked=asked: stats.get_dashboard(session, some[0], asked, now),
        ) <= 6  # fmt: skip
        assert (
            await questions(
                lambda session, asked=asked: stats.get_overview(session, ada.id, asked, now)
            )
            == 3
        )
        assert (
            await questions(
                lambda session, asked=asked: stats.get_overview_breakdown(
                    session, ada.id, "countries", asked, now
                )
            )
            == 3
        )


BIG = {"click_rollups", "click_events"}


async def test_no_question_walks_along_a_whole_table(
    rt: Runtime, clock: ManualClock, ada: User
) -> None:
    async with rt.db.write() as session:
        links_of_hers = [(await make.link(session, rt, ada)).id for _ in range(5)]
    await fill(rt, [*links_of_hers, *range(1, 60)], 6)
    async with rt.db.write() as session:
        await insert_rows(
            session,
            TABLE,
            [
                click_event(clock.now() - timedelta(minutes=number), number, number % 50)
                for number in range(4000)
            ],
        )
    if rt.db.dialect != "sqlite":
        async with rt.db.engine.connect() as connection:
            words = "click_rollups, click_events, link_owners"
            await connection.execute(
                text(f"ANALYZE {'TABLE ' if rt.db.dialect == 'mysql' else ''}{words}")
            )
            await connection.commit()
    seen: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        seen.append((statement, parameters))

    event.listen(rt.db.read_engine.sync_engine, "before_cursor_execute", note)
    now = clock.now()
    for zone in ("UTC", "Asia/Kolkata"):
        async with rt.db.read() as looking:
            await stats.get_dashboard(
                looking, links_of_hers[0], StatsQuery(now - timedelta(days=5), tz=zone), now
            )
        async with rt.db.read() as looking:
            await stats.get_overview(
                looking, ada.id, StatsQuery(now - timedelta(days=5), tz=zone), now
            )
    _ = [some async for some in events.iter_events(rt, 7, now - timedelta(hours=3), now)]
    event.remove(rt.db.read_engine.sync_engine, "before_cursor_execute", note)
    looked = [
        (statement, given) for statement, given in seen if any(name in statement for name in BIG)
    ]
    assert len(looked) >= 5
    faults = {
        statement: found
        for statement, given in looked
        if (found := await _faults(rt, statement, given))
    }
    assert not faults


async def _faults(rt: Runtime, statement: str, parameters: Any) -> list[str]:
    async with rt.db.read_engine.connect() as connection:
        if rt.db.dialect == "sqlite":
            plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            return [
                line
                for line in (str(row.detail) for row in plan)
                if re.match(rf"SCAN ({'|'.join(BIG)})", line)
            ]
        if rt.db.dialect == "postgresql":
            raw_plan = (
                await connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
            ).scalar_one()
            return _walks(
                (json.loads(raw_plan) if isinstance(raw_plan, str) else raw_plan)[0]["Plan"]
            )
        plan = await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
        rows = [dict(row._mapping) for row in plan]
        return [
            f"{row['type']} on {row['table']}"
            for row in rows
            if row["table"] in BIG and row["type"] in ("ALL", "index")
        ]


def _walks(node: dict[str, Any]) -> list[str]:
    found = (
        [f"{node['Node Type']} on {node['Relation Name']}"]
        if node["Node Type"] == "Seq Scan" and node.get("Relation Name") in BIG
        else []
    )
    return found + [one for inner in node.get("Plans", []) for one in _walks(inner)]
