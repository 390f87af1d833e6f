"""Query plans: what a question asks a database, and which statements read a whole table."""

import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime

Question = Callable[[ReadSession], Awaitable[Any]]


@contextmanager
def record_statements(engine: AsyncEngine) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that run inside the block, with their parameters."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        asked.append((statement, parameters))

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(engine.sync_engine, "before_cursor_execute", note)


async def assert_no_scans(
    rt: Runtime, questions: Mapping[str, Question], big: Collection[str]
) -> None:
    """Fail with every statement of the questions that reads a whole one of the big tables."""
    report: list[str] = []
    for name, question in questions.items():
        with record_statements(rt.db.read_engine) as asked:
            async with rt.db.read() as session:
                await question(session)
        selects = [found for found in asked if found[0].startswith("SELECT")]
        assert selects, name
        for statement, parameters in selects:
            report += [
                f"{name}: {scan}\n{statement}"
                for scan in await find_scans(rt, statement, parameters, big)
            ]
    assert not report, "\n\n".join(report)


async def count_rows_read(rt: Runtime, question: Question) -> int:
    """Return how many rows a server reads for a question, over all steps of its plans."""
    with record_statements(rt.db.read_engine) as asked:
        async with rt.db.read() as session:
            await question(session)
    count = _count_in_postgresql if rt.db.dialect == "postgresql" else _count_in_mysql
    async with rt.db.read_engine.connect() as connection:
        return sum([await count(connection, *found) for found in asked if "SELECT" in found[0]])


async def _count_in_postgresql(connection: AsyncConnection, statement: str, values: Any) -> int:
    analyzed = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}"
    raw = (await connection.exec_driver_sql(analyzed, values)).scalar_one()
    return _sum_rows((json.loads(raw) if isinstance(raw, str) else raw)[0]["Plan"])


def _sum_rows(node: dict[str, Any]) -> int:
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    rows = node["Actual Rows"] + sum(node.get(name, 0) for name in removed)
    return int(rows * node["Actual Loops"]) + sum(map(_sum_rows, node.get("Plans", [])))


async def _count_in_mysql(connection: AsyncConnection, statement: str, values: Any) -> int:
    await connection.exec_driver_sql("FLUSH STATUS")
    (await connection.exec_driver_sql(statement, values)).all()
    counters = await connection.exec_driver_sql("SHOW STATUS LIKE 'Handler_read%%'")
    return sum(int(count) for count in counters.scalars(1))


async def find_scans(
    rt: Runtime, statement: str, parameters: Any, big: Collection[str]
) -> list[str]:
    """Return the lines of a statement's plan that read a whole one of the big tables."""
    async with rt.db.read_engine.connect() as connection:
        if rt.db.dialect == "sqlite":
            plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            return _find_in_sqlite([str(row.detail) for row in plan], big)
        if rt.db.dialect == "postgresql":
            plan = await connection.exec_driver_sql(
                f"EXPLAIN (FORMAT JSON) {statement}", parameters
            )
            raw = plan.scalar_one()
            root = (json.loads(raw) if isinstance(raw, str) else raw)[0]["Plan"]
            return _find_in_postgresql(root, big)
        plan = await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
        return _find_in_mysql([dict(row._mapping) for row in plan], big)


def _find_in_sqlite(plan: list[str], big: Collection[str]) -> list[str]:
    sorted_after = any("USE TEMP B-TREE FOR ORDER BY" in line for line in plan)
    return [
        line
        for line in plan
        if (scan := re.match(r"SCAN (\w+)(.*)", line))
        and scan[1] in big
        and ("USING" not in scan[2] or sorted_after)
    ]


def _find_in_postgresql(
    node: dict[str, Any], big: Collection[str], *, below_sort: bool = False
) -> list[str]:
    """Return sequential scans of big tables, and full index walks that are sorted afterwards."""
    kind, table = node["Node Type"], node.get("Relation Name")
    walked = kind in ("Index Scan", "Index Only Scan") and "Index Cond" not in node
    scans = (
        [f"{kind} on {table}"]
        if table in big and (kind == "Seq Scan" or (walked and below_sort))
        else []
    )
    for inner in node.get("Plans", []):
        scans += _find_in_postgresql(inner, big, below_sort=below_sort or kind == "Sort")
    return scans


def _find_in_mysql(rows: list[dict[str, Any]], big: Collection[str]) -> list[str]:
    sorted_after = any("filesort" in (row["Extra"] or "") for row in rows)
    return [
        f"{row['type']} on {row['table']}: {row['Extra']}"
        for row in rows
        if row["table"] in big
        and (row["type"] == "ALL" or (row["type"] == "index" and sorted_after))
    ]
