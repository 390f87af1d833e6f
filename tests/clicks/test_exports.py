"""Exports contain every click once, wherever it is stored, and no formula or address."""

import csv
import io
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from refract.clicks.archive import service
from refract.clicks.archive.parquet import open_connection
from refract.clicks.spool.format import LINK_CLICK, encode_frame
from refract.clicks.stats import events, export
from refract.clicks.stats.export import EXPORT_FIELDS, ExportSlots
from refract.core.clock import ManualClock
from refract.core.db.bulk import insert_rows
from refract.core.runtime import Runtime
from refract.core.text import unescape_formula
from refract.identity.models import User
from tests import make
from tests.clicks.archiving import TABLE, event
from tests.clicks.counting import click, stored
from tests.client import by_key, on_sqlite

BEGIN = datetime(2026, 5, 10, tzinfo=UTC)


class Asker:
    """Ada, who exports the clicks of her link."""

    def __init__(self, rt: Runtime, client: AsyncClient, link: int, key: str) -> None:
        self.rt, self.client, self.link, self.headers = rt, client, link, by_key(key)

    async def ask(self, **query: Any) -> Any:
        given = {name.rstrip("_"): value for name, value in query.items()}
        return await self.client.get(
            f"/api/v1/links/{self.link}/stats/export", params=given, headers=self.headers
        )

    async def csv(self, **query: Any) -> list[dict[str, str]]:
        response = await self.ask(**query)
        assert response.status_code == 200, response.text
        return list(csv.DictReader(io.StringIO(response.text, newline="")))

    async def parquet(self, folder: Path, **query: Any) -> list[dict[str, Any]]:
        response = await self.ask(format="parquet", **query)
        assert response.status_code == 200, response.text
        (folder / "got.parquet").write_bytes(response.content)
        with open_connection(folder) as connection:
            path = folder / "got.parquet"
            found = connection.execute(f"SELECT * FROM '{path}'")  # noqa: S608 - our own file
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.fixture
async def asker(rt: Runtime, client: AsyncClient, ada: User) -> Asker:
    async with rt.db.write() as session:
        return Asker(
            rt, client, (await make.link(session, rt, ada)).id, await make.key(session, rt, ada)
        )


async def fill(asker: Asker, days: int, count: int) -> list[dict[str, Any]]:
    """Add events over some days, of the link and others; return the link's own, in order."""
    chance = random.Random(3)
    rows = [
        event(
            BEGIN + timedelta(microseconds=chance.randrange(days * 86_400_000_000)),
            number,
            chance.choice([asker.link, 99]),
        )
        for number in range(count)
    ]
    async with asker.rt.db.write() as session:
        await insert_rows(session, TABLE, rows)
    mine = [row for row in rows if row["target_id"] == asker.link]
    return sorted(mine, key=lambda row: (row["at"], row["spool_id"], row["segment"], row["place"]))


def told(rows: list[dict[str, Any]]) -> list[str]:
    return [row["at"].isoformat(timespec="microseconds").replace("+00:00", "Z") for row in rows]


async def test_old_and_new_clicks_each_once_in_order(
    asker: Asker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Some days are archived, one has a late click too, the last week is in the database."""
    monkeypatch.setattr(events, "PAGE_SIZE", 17)
    monkeypatch.setattr(events, "MAX_ARCHIVED_EVENTS", 12)
    mine = await fill(asker, 22, 300)
    await service.archive_old_days(asker.rt)
    late = event(BEGIN + timedelta(days=2, hours=5), 9_000, asker.link)
    async with asker.rt.db.write() as session:
        await insert_rows(session, TABLE, [late])
    mine = sorted(
        [*mine, late], key=lambda row: (row["at"], row["spool_id"], row["segment"], row["place"])
    )

    span = {"from_": "2026-05-01", "to": "2026-06-02"}
    lines = await asker.csv(**span)

    assert [line["at"] for line in lines] == told(mine)
    assert len({line["event_id"] for line in lines}) == len(mine)
    assert {line["link_id"] for line in lines} == {str(asker.link)}
    assert [unescape_formula(line["user_agent"]) for line in lines] == [
        row["user_agent"] for row in mine
    ]
    columns = await asker.parquet(tmp_path, **span)
    assert list(columns[0]) == list(EXPORT_FIELDS)
    assert [row["at"] for row in columns] == [row["at"] for row in mine]
    assert [row["event_id"] for row in columns] == [line["event_id"] for line in lines]
    assert [row["latitude"] for row in columns] == [row["latitude"] for row in mine]
    assert not [
        path
        for path in service.ensure_directory(asker.rt).iterdir()
        if path.name.startswith(service.EXPORT_PREFIX)
    ]


async def test_the_process_that_serves_loads_neither_duckdb_nor_numpy(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = await fill(asker, 22, 60)
    await service.archive_old_days(asker.rt)
    for name in ("duckdb", "refract.clicks.columns.table"):  # the latter imports numpy
        monkeypatch.setitem(sys.modules, name, None)  # importing it here fails from now on
    span = {"from_": "2026-05-01", "to": "2026-06-02"}

    assert len(await asker.csv(**span)) == len(mine)
    assert (await asker.ask(format="parquet", **span)).content.startswith(b"PAR1")
    path = f"/api/v1/links/{asker.link}/stats/sources"
    told = {"from": span["from_"], "to": span["to"]}
    answer = await asker.client.get(path, params=told, headers=asker.headers)
    assert answer.json()["total"] == sum(not row["bot"] for row in mine)
    filtered = told | {"device": "desktop"}
    answer = await asker.client.get(path, params=filtered, headers=asker.headers)
    assert answer.json()["total"] == sum(not row["bot"] for row in mine)


async def test_the_end_is_not_included_and_moments_are_exact(asker: Asker) -> None:
    mine = await fill(asker, 22, 60)
    await service.archive_old_days(asker.rt)
    for first, last in ((4, 20), (0, 1), (5, len(mine) - 1)):
        begin, end = (told([mine[number]])[0] for number in (first, last))
        assert [line["at"] for line in await asker.csv(from_=begin, to=end)] == told(
            mine[first:last]
        )


async def test_parts_of_campaigns_are_counted_click_by_click(asker: Asker) -> None:
    mine = await fill(asker, 22, 200)
    await service.archive_old_days(asker.rt)
    people = [row for row in mine if not row["bot"]]
    path = f"/api/v1/links/{asker.link}/stats/sources"
    answer = (
        await asker.client.get(
            path, params={"from": "2026-05-01", "to": "2026-06-02"}, headers=asker.headers
        )
    ).json()
    assert answer["items"] == [
        {"value": "=1+1", "label": "=1+1", "clicks": len(people), "share": 1.0}
    ]
    assert (answer["total"], answer["other"], answer["without"]) == (len(people), 0, 0)


async def test_moving_into_the_archive_in_mid_export_loses_and_repeats_nothing(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "PAGE_SIZE", 10)
    mine = await fill(asker, 12, 150)
    found: list[Any] = []
    moved = False
    async for some in events.iter_events(asker.rt, asker.link, BEGIN, BEGIN + timedelta(days=30)):
        found += some
        if not moved and len(found) > 20:
            moved = True
            await service.archive_old_days(asker.rt)
    assert [row[events._AT_INDEX] for row in found] == [row["at"] for row in mine]


@on_sqlite
async def test_formulas_are_defused_and_hostile_text_stays_text(
    asker: Asker, clock: ManualClock, tmp_path: Path
) -> None:
    evil = ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "\t=1", '"a,b"\r\n=2', "Zoë 🎉"]
    times = [clock.now() + timedelta(seconds=number) for number in range(len(evil))]
    await stored(
        asker.rt, [click(asker.link, at, agent=text) for at, text in zip(times, evil, strict=True)]
    )
    lines = await asker.csv(to="2026-06-02")
    agents = [line["user_agent"] for line in lines]
    assert not [text for text in agents if text.startswith(("=", "+", "-", "@", "\t"))]
    assert [unescape_formula(text) for text in agents] == [
        row["user_agent"] for row in await asker.parquet(tmp_path, to="2026-06-02")
    ]


@on_sqlite
async def test_heads_of_exports(asker: Asker) -> None:
    response = await asker.ask()
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"].startswith('attachment; filename="clicks-')
    assert response.text.strip() == ",".join(EXPORT_FIELDS)
    empty = await asker.ask(format="parquet")
    assert empty.headers["content-type"] == "application/vnd.apache.parquet"
    assert empty.content[:4] == b"PAR1"


@on_sqlite
async def test_exports_are_bounded_and_a_missing_file_is_named(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "MAX_EXPORTS", 1)
    with asker.rt.singleton(ExportSlots).acquire():
        busy = await asker.ask()
    assert (busy.status_code, busy.json()["code"]) == (503, "TOO_MANY_EXPORTS")
    assert (await asker.ask()).status_code == 200
    assert asker.rt.singleton(ExportSlots).running == 0
    await fill(asker, 1, 5)
    await service.archive_old_days(asker.rt)
    for path in service.ensure_directory(asker.rt).glob("*.parquet"):
        path.unlink()
    for form in ("parquet", "csv"):  # CSV was 200 with its heading alone, then cut off
        lost = await asker.ask(format=form, from_="2026-05-01", to="2026-06-01")
        assert (lost.status_code, lost.json()["code"]) == (503, "ARCHIVE_FILE_MISSING")


@on_sqlite
async def test_no_address_is_in_a_column_file(rt: Runtime, clock: ManualClock) -> None:
    """The last octet of a canary address must not survive in frame, database and file."""
    canary = "203.0.113.199"
    await stored(
        rt,
        [
            click(42, clock.now(), host=canary, agent=f"Mozilla/5.0 Firefox/{number}")
            for number in range(50)
        ],
    )
    clock.advance(20 * 86_400)
    await service.archive_old_days(rt)
    (only,) = service.ensure_directory(rt).glob("*.parquet")
    with open_connection(service.ensure_directory(rt)) as connection:
        rows = connection.execute(f"SELECT * FROM '{only}'").fetchall()  # noqa: S608
    assert len(rows) == 50
    assert canary not in repr(rows)
    assert "203.0.113.0" in repr(rows)
    assert canary.encode() not in only.read_bytes()
    with pytest.raises(ValueError, match="anonymous"):
        encode_frame(LINK_CLICK, 42, 0, 0, b"\xcb\x00\x71\xc7" * 2, b"", b"", b"")
