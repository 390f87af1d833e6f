"""How fast is the analytics of an account with ten million clicks, with none, one and two filters?

    python -m bench analytics [--clicks N] [--days N] [--rounds N]

The clicks of a year lie where they would: those of the last seven days in the database (SQLite),
the others in one Parquet file a day, written by DuckDB with the columns and order of the archive,
and their tables, built by the archive's own job. Without a filter, figures come from roll-ups
(`make bench dashboard`), which here have none to read; with filters they are counted click by
click, in a process of its own. Each question is asked for the last 30 days and for the whole year;
one answer is totals, series and all breakdowns. The first answer is that of a new process. CPU is
that of all processes. The bars are p95: 150 ms with one filter, 1.5 s with two.
"""

import argparse
import asyncio
import os
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

from bench._common import busy, cpu_seconds, table, write
from bench._runtime import own_runtime
from refract.clicks.archive.models import ArchiveFile
from refract.clicks.archive.parquet import COLUMN_TYPES
from refract.clicks.archive.processes import ArchiveProcesses
from refract.clicks.archive.service import ensure_directory
from refract.clicks.columns.service import build_missing_tables
from refract.clicks.models import ClickEvent
from refract.clicks.spool.format import LINK_CLICK
from refract.clicks.stats import StatsQuery
from refract.clicks.stats.calendar import Granularity
from refract.clicks.stats.filtered import FilteredStats
from refract.clicks.stats.filters import ClickFilter
from refract.clicks.stats.scope import AccountScope
from refract.core.db.bulk import insert_rows
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make

NOW = datetime(2026, 6, 1, 11, 20, tzinfo=UTC)
HOT_DAYS = 7
LINKS = 200
BARS = {1: 150.0, 2: 1500.0}
FILTERS = ({"countries": "C3"}, {"devices": "mobile"}, {"countries": "C3", "devices": "mobile"})
_CITY = "(300 * (hash(range) % 1000003 / 1000003.0) ** 3)::INT"  # each in one country
_VALUES = {
    "kind": str(LINK_CLICK),
    "bot": "random() < 0.1",
    "private": "random() < 0.02",
    "node": "'web-1'",
    "network": "'10.' || (random() * 255)::INT || '.' || (random() * 255)::INT || '.0'",
    "user_agent": "'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Firefox/' || (random() * 300)::INT",
    "referrer_host": "'site' || (100 * random() ** 3)::INT || '.example'",
    "utm_campaign": "CASE WHEN random() < 0.2 THEN 'campaign' || (random() * 10)::INT END",
    "country_code": f"'C' || {_CITY} % 60",
    "city": f"'City' || {_CITY}",
    "device": "['desktop', 'mobile', 'tablet'][1 + (random() * 2)::INT]",
    "browser": "'Browser' || (12 * random() ** 2)::INT",
    "system": "'System' || (8 * random() ** 2)::INT",
    "spool_id": "1",
    "segment": "1",
}


def _select_events(links: list[int], day: date, clicks: int) -> str:
    columns = {name: f"NULL::{kind}" for name, kind in COLUMN_TYPES.items()}
    columns |= {name: f"({value})::{COLUMN_TYPES[name]}" for name, value in _VALUES.items()}
    columns["target_id"] = f"{links}[1 + ({LINKS - 1} * random() ** 3)::INT]::BIGINT"
    columns["place"] = f"(range + {day.toordinal() * 1_000_000 % 2_000_000_000})::INTEGER"
    columns["at"] = f"TIMESTAMPTZ '{day} 00:00:00+00' + to_microseconds((random() * 86e9)::BIGINT)"
    listed = ", ".join(f'{value} AS "{name}"' for name, value in columns.items())
    return f"SELECT {listed} FROM range({clicks})"  # noqa: S608 - our own words


async def _fill(rt: Runtime, clicks: int, days: int) -> User:
    import duckdb  # noqa: PLC0415 - heavy

    async with rt.db.write() as session:
        ada = await make.person(session, rt)
        links = [(await make.link(session, rt, ada)).id for _ in range(LINKS)]
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    directory, first = ensure_directory(rt), NOW.date() - timedelta(days=days - 1)
    for number in range(days):
        day = first + timedelta(days=number)
        events = _select_events(links, day, clicks // days)
        if day > NOW.date() - timedelta(days=HOT_DAYS):
            rows = connection.execute(events).fetchall()
            names = list(COLUMN_TYPES)
            for begin in range(0, len(rows), 4000):
                some = [dict(zip(names, row, strict=True)) for row in rows[begin : begin + 4000]]
                async with rt.db.write() as session:
                    await insert_rows(session, ClickEvent, some)
            continue
        name = f"{day}.parquet"
        connection.execute(
            f"COPY ({events} ORDER BY target_id, \"at\") TO '{directory / name}'"
            " (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 9, ROW_GROUP_SIZE 100000)"
        )
        at = datetime(day.year, day.month, day.day, tzinfo=UTC)
        async with rt.db.write() as session:
            session.add(
                ArchiveFile(
                    day=day,
                    part=1,
                    name=name,
                    events=clicks // days,
                    link_events=clicks // days,
                    size=(directory / name).stat().st_size,
                    first_at=at,
                    last_at=at,
                    created_at=at,
                )
            )
    return ada


async def measure(clicks: int, days: int, rounds: int) -> dict[str, Any]:
    found: dict[str, Any] = {"answers": []}
    async with own_runtime("sqlite", "analytics", NOW) as rt:
        ada = await _fill(rt, clicks, days)
        begun = time.perf_counter()
        await build_missing_tables(rt)
        found["seconds_to_build_tables"] = time.perf_counter() - begun
        for ending in ("parquet", "columns"):
            files = ensure_directory(rt).glob(f"*.{ending}")
            found[f"{ending}_bytes"] = sum(file.stat().st_size for file in files)
        periods = {
            "30 days": StatsQuery(NOW - timedelta(days=30), NOW),
            "all": StatsQuery(NOW - timedelta(days=days), NOW, Granularity.WEEK),
        }
        for period, query in periods.items():
            for values in FILTERS:
                source = FilteredStats(rt, AccountScope(ada.id), ClickFilter(values))
                found["answers"].append({"period": period, **await _ask(source, query, rounds)})
    return found


async def _ask(source: FilteredStats, query: StatsQuery, rounds: int) -> dict[str, Any]:
    await source.rt.singleton(ArchiveProcesses).close()
    times, counted, cpu = [], 0, 0.0
    for number in range(rounds + 1):
        begun = time.perf_counter()
        answer = await source.load_dashboard(query, NOW, links=10)
        times.append((time.perf_counter() - begun) * 1000)
        counted = answer.stats.totals.clicks
        if number == 0:
            cpu = cpu_seconds(os.getpid())
    kept = sorted(times[1:])
    return {
        "filter": dict(source.chosen.values),
        "clicks": counted,
        "first": times[0],
        "median": kept[len(kept) // 2],
        "p95": kept[min(len(kept) - 1, int(len(kept) * 0.95))],
        "cpu": (cpu_seconds(os.getpid()) - cpu) * 1000 / rounds,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="make bench analytics", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--clicks", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args(arguments)
    load = busy()
    results = asyncio.run(measure(given.clicks, given.days, given.rounds))
    rows, held = [], True
    for answer in results["answers"]:
        bar = BARS[len(answer["filter"])]
        held = held and answer["p95"] <= bar
        figures = [f"{answer[name]:.0f} ms" for name in ("first", "median", "p95", "cpu")]
        chosen = ", ".join(answer["filter"].values())
        rows.append([answer["period"], chosen, f"{answer['clicks']:,}", *figures, f"{bar:.0f} ms"])
    table(["period", "filter", "counted", "first", "median", "p95", "CPU", "bar"], rows)
    sizes = [results[f"{ending}_bytes"] / given.clicks for ending in ("parquet", "columns")]
    print(
        f"tables built in {results['seconds_to_build_tables']:.0f} s; a click takes"
        f" {sizes[0]:.1f} bytes in Parquet files and {sizes[1]:.1f} in tables; load {load:.1f}"
    )
    print(f"bars: {'held' if held else 'MISSED'}")
    write("analytics", "analytics", load, clicks=given.clicks, results=results, held=held)
    return 0 if held else 1
