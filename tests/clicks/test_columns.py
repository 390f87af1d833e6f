"""Clicks as columns: every dimension, kept up to date, and files that can be built again."""

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from refract.clicks.archive import service as archive
from refract.clicks.archive.jobs import ArchiveClicks, archive_clicks
from refract.clicks.archive.parquet import (
    PARQUET_SUFFIX,
    build_source,
    get_table_name,
    open_connection,
    quote_path,
)
from refract.clicks.archive.processes import ArchiveProcesses
from refract.clicks.archive.service import ArchiveFileMissing
from refract.clicks.columns import table
from refract.clicks.columns.dimensions import COLUMN_DIMENSIONS, FACT_DIMENSIONS
from refract.clicks.columns.files import FileTables
from refract.clicks.columns.service import build_missing_tables
from refract.clicks.columns.table import ClickTableBuilder, ValueNumbering
from refract.clicks.languages import UNKNOWN_LANGUAGE
from refract.clicks.rollups.breakdowns import DEFAULT_DOMAIN, NO_RULE
from refract.clicks.stats import StatsQuery
from refract.clicks.stats.filtered import FilteredStats
from refract.clicks.stats.filters import ClickFilter
from refract.clicks.stats.scope import LinkScope
from refract.core.clock import ManualClock
from refract.core.db.bulk import insert_rows
from refract.core.runtime import Runtime
from tests.clicks.archiving import TABLE, event
from tests.clicks.counting import click, stored
from tests.waiting import eventually

LINK = 42
DAYS = 12
CHOICES: dict[str, list[str | None]] = {
    "device": ["desktop", "mobile"],
    "browser": ["Firefox", "firefox", None],
    "system": ["Linux", "Linux ", None],
    "referrer_host": ["a.example", None],
    "country_code": ["DE", "FR", None],
    "city": ["Köln", "Koln", "", None],
    "utm_campaign": ["spring", "Spring", "", None],
    "utm_source": ["mail", None],
    "utm_medium": ["x", None],
    "utm_term": ["t", "", None],
    "utm_content": ["c", None],
    "domain": ["sho.rt", "go.example.org", None],
    "language": ["de", "zh", None],
    "rule": ["1", "12", None],
    "node": ["here", "there"],
    "network": ["198.51.100.0", "203.0.113.0", None],
}


def value_of(row: dict[str, Any], dimension: str) -> str | None:
    """Return the value by which an event is counted."""
    country = row["country_code"] or "XX"
    values: dict[str, str | None] = {
        "devices": row["device"],
        "browsers": row["browser"],
        "systems": row["system"],
        "referrers": row["referrer_host"] or "direct",
        "countries": country,
        "cities": f"{row['city']}, {country}" if row["city"] else None,
        "campaigns": row["utm_campaign"],
        "sources": row["utm_source"],
        "mediums": row["utm_medium"],
        "terms": row["utm_term"],
        "contents": row["utm_content"],
        "nodes": row["node"],
        "domains": row["domain"] or DEFAULT_DOMAIN,
        "languages": row["language"] or UNKNOWN_LANGUAGE,
        "rules": row["rule"] or NO_RULE,
    }
    return values[dimension]


async def fill(rt: Runtime, count: int, seed: int) -> list[dict[str, Any]]:
    """Store events with any values, and archive the older ones."""
    chance, now = random.Random(seed), rt.clock.now()
    rows = [
        event(
            now - timedelta(minutes=chance.randrange(1, DAYS * 24 * 60)),
            number,
            chance.choice([LINK, LINK, LINK + 1]),
            private=chance.random() < 0.1,
            **{name: chance.choice(values) for name, values in CHOICES.items()},
        )
        for number in range(count)
    ]
    async with rt.db.write() as session:
        await insert_rows(session, TABLE, rows)
    await archive.archive_old_days(rt)
    return rows


async def count(rt: Runtime, values: dict[str, str], dimension: str) -> tuple[int, dict[str, int]]:
    source = FilteredStats(rt, LinkScope(LINK), ClickFilter(values, DEFAULT_DOMAIN))
    now = rt.clock.now()
    asked = StatsQuery(now - timedelta(days=DAYS + 1), now)
    found = await source.load_breakdown(dimension, asked, now, limit=50, links=0)
    return found.total + found.without, {item.value: item.clicks for item in found.items}


@pytest.mark.parametrize("seed", [3, 4])
async def test_every_dimension_filters_and_is_counted_by_its_exact_value(
    rt: Runtime, clock: ManualClock, seed: int
) -> None:
    rows = await fill(rt, 600, seed)
    chance = random.Random(seed)
    for dimension in COLUMN_DIMENSIONS:
        filtered = chance.choice(COLUMN_DIMENSIONS)
        known = [row for row in rows if value_of(row, filtered) and not row["private"]]
        value = value_of(chance.choice(known), filtered)
        assert value is not None
        matching = [
            row
            for row in known
            if row["target_id"] == LINK and not row["bot"] and value_of(row, filtered) == value
        ]
        expected = Counter(value_of(row, dimension) for row in matching)
        for nothing in (None, ""):
            expected.pop(nothing, None)
        assert await count(rt, {filtered: value}, dimension) == (len(matching), expected)


async def test_counted_days_serve_other_periods_and_notice_late_clicks(rt: Runtime) -> None:
    rows = await fill(rt, 300, 5)
    now = rt.clock.now()
    source = FilteredStats(rt, LinkScope(LINK), ClickFilter({"devices": "desktop"}, DEFAULT_DOMAIN))

    async def ask(begin: datetime) -> int:
        found = await source.load_breakdown("nodes", StatsQuery(begin, now), now, limit=9, links=0)
        return found.total + found.without

    def count_by_hand(begin: datetime) -> int:
        return sum(
            row["target_id"] == LINK
            and row["device"] == "desktop"
            and row["at"] >= begin
            and not (row["bot"] or row["private"])
            for row in rows
        )

    hour = now.replace(minute=0, second=0, microsecond=0)
    begins = [hour - timedelta(hours=hours) for hours in (24 * DAYS, 24 * DAYS - 29, 24 * 8 + 5)]
    for begin in (*begins, *begins):
        assert await ask(begin) == count_by_hand(begin)

    late = hour - timedelta(days=9)
    await stored(rt, [click(LINK, late)])
    rows.append(event(late, 999, LINK, bot=False, private=False, device="desktop"))
    assert [await ask(begin) for begin in begins] == [count_by_hand(begin) for begin in begins]


@pytest.mark.usefixtures("own_processes")
async def test_new_clicks_are_counted_by_each_process_and_after_a_restart(rt: Runtime) -> None:
    moment = rt.clock.now() - timedelta(hours=1)
    device = {"devices": "desktop"}
    pool = rt.singleton(ArchiveProcesses)
    await stored(rt, [click(LINK, moment)])
    assert (await count(rt, device, "nodes"))[0] == 1
    async with pool.acquire():  # the next request has another process
        await stored(rt, [click(LINK, moment, host=f"203.0.{number}.1") for number in range(3)])
        assert (await count(rt, device, "nodes"))[0] == 4
    await stored(rt, [click(LINK, moment)], node="there")
    for _ in range(2):
        assert await count(rt, device, "nodes") == (5, {"here": 4, "there": 1})
    await pool.close()
    assert await count(rt, device, "nodes") == (5, {"here": 4, "there": 1})


async def test_a_process_with_open_connections_ends_with_its_input(rt: Runtime) -> None:
    await count(rt, {"devices": "desktop"}, "nodes")
    async with rt.singleton(ArchiveProcesses).acquire() as process:
        source: Any = process._process.stdin
        source.close()
        await eventually(lambda: not process.is_alive)


async def _archive_one_day(rt: Runtime) -> tuple[datetime, str]:
    day = rt.clock.now().replace(hour=0, minute=0) - timedelta(days=9)
    async with rt.db.write() as session:
        await insert_rows(
            session, TABLE, [event(day + timedelta(hours=n), n, bot=False) for n in range(20)]
        )
    await archive.archive_old_days(rt)
    async with rt.db.read() as session:
        (name,) = await archive.list_names(session)
    return day, name


async def test_a_table_is_built_ahead_and_again_if_it_is_lost_or_damaged(rt: Runtime) -> None:
    _, name = await _archive_one_day(rt)
    path = archive.ensure_directory(rt) / get_table_name(name)
    assert await build_missing_tables(rt) == 1
    assert await build_missing_tables(rt) == 0
    whole = path.read_bytes()
    for damaged in (b"", whole[:-9], whole[:12], b"RFCOLS0" + whole[7:], whole[:-9] + bytes(9)):
        path.write_bytes(damaged)
        table = FileTables(path.parent, ValueNumbering()).load([name], [])
        assert table.targets.size == 20
        assert path.read_bytes() == whole
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("missing", "dimensions"),
    [
        ("rule", ["rules"]),
        ("language, rule", ["languages", "rules"]),
        ("domain, language, rule", ["domains", "languages", "rules"]),
    ],
)
async def test_files_of_older_versions_lack_domain_language_and_rule(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch, missing: str, dimensions: list[str]
) -> None:
    """Neither the Parquet file nor its table has the columns."""
    _, name = await _archive_one_day(rt)
    directory, older = archive.ensure_directory(rt), f"older{PARQUET_SUFFIX}"
    with open_connection(directory) as connection:
        source, target = build_source(directory, [name]), quote_path(directory / older)
        connection.execute(
            f"COPY (SELECT * EXCLUDE ({missing}) FROM {source}) TO {target}"  # noqa: S608
        )
    with monkeypatch.context() as patch:
        campaign = FACT_DIMENSIONS["campaign"][: -len(dimensions)]
        patch.setattr(table, "FACT_DIMENSIONS", {**FACT_DIMENSIONS, "campaign": campaign})
        before = ClickTableBuilder()
        before.add_rows([(1, LINK, 0, 1, *["x"] * (len(COLUMN_DIMENSIONS) - len(dimensions)))])
        content = before.encode()
    (directory / get_table_name("before.parquet")).write_bytes(content)
    for stem, clicks in (("older", 20), ("before", 1)):
        numbering = ValueNumbering()
        found = FileTables(directory, numbering).load([f"{stem}{PARQUET_SUFFIX}"], [])
        assert found.targets.size == clicks
        for dimension in dimensions:
            assert list(numbering.numbers[dimension]) == [None]


async def test_clicks_are_counted_if_a_table_cannot_be_written(rt: Runtime) -> None:
    _, name = await _archive_one_day(rt)
    path = archive.ensure_directory(rt) / get_table_name(name)
    path.mkdir()
    assert FileTables(path.parent, ValueNumbering()).load([name], []).targets.size == 20


async def test_a_missing_file_is_named(rt: Runtime) -> None:
    _, name = await _archive_one_day(rt)
    (archive.ensure_directory(rt) / name).unlink()
    with pytest.raises(ArchiveFileMissing, match=name):
        await count(rt, {"devices": "desktop"}, "devices")


async def test_tables_are_deleted_with_their_files(rt: Runtime, clock: ManualClock) -> None:
    _, name = await _archive_one_day(rt)
    directory = archive.ensure_directory(rt)
    await archive_clicks(rt, ArchiveClicks())
    assert (directory / get_table_name(name)).exists()
    stray = directory / get_table_name(name.replace("-1-", "-7-"))
    stray.write_bytes(b"")
    await archive.sweep_files(rt, grace=0)
    assert not stray.exists()
    assert (directory / get_table_name(name)).exists()
    clock.advance(timedelta(days=rt.settings.archive_days + 1).total_seconds())
    await archive.drop_expired_files(rt)
    assert not (directory / get_table_name(name)).exists()
