"""The move to a server: complete, compared, resumable, and never into foreign data."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import delete, insert

from proofs.harness.filling import Filler, sums
from refract import migrations
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.links.models import FeedEntry, LinkTotals
from refract.transfer import move as module
from refract.transfer import table_io
from refract.transfer.move import (
    MoveResult,
    TargetNotEmpty,
    UnsupportedSource,
    UnsupportedTarget,
    move_database,
)
from tests.conftest import START, make_settings
from tests.serving import refract, serving

servers = pytest.mark.parametrize("database", ["postgresql", "mysql"], indirect=True)


class Cut(Exception):
    """The power went."""


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[Database]:
    """A SQLite installation with rows in nearly every table, and several batches of one."""
    db = Database(make_settings(tmp_path / "old"))
    await migrations.upgrade(db)
    await Filler(db).fill()
    async with db.write() as session:
        await session.execute(
            insert(LinkTotals),
            [
                {"link_id": number, "total_clicks": number, "bot_clicks": 0}
                for number in range(1_000_000, 1_005_000)
            ],
        )
    yield db
    await db.close()


def silent(_table: str, _done: int, _all: int) -> None:
    """Nobody watches."""


@servers
async def test_every_table_is_the_same_there(source: Database, rt: Runtime) -> None:
    before = await sums(source)
    told: list[tuple[str, int, int]] = []
    moved = await move_database(source, rt.db, lambda *some: told.append(some))

    assert await sums(rt.db) == before
    assert not moved.resumed
    assert (
        "link_totals",
        moved_rows(before, "link_totals"),
        moved_rows(before, "link_totals"),
    ) in told
    async with rt.db.write() as session:
        await session.execute(insert(FeedEntry).values(at=START, target_id=1, version=1, names=[]))


def moved_rows(spelled: dict[str, str], table: str) -> int:
    return int(spelled[table].split(":")[0])


@servers
async def test_it_goes_on_where_it_was_cut_off(
    source: Database, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(table: str, done: int, _all: int) -> None:
        if table == "link_totals" and done >= 2000:
            raise Cut

    with pytest.raises(Cut):
        await move_database(source, rt.db, cut)
    written: list[int] = []
    original = table_io.write_lines

    async def counting(connection: object, form: object, some: list[bytes]) -> None:
        written.append(len(some))
        await original(connection, form, some)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "write_lines", counting)
    moved = await move_database(source, rt.db, silent)

    assert moved.resumed
    assert sum(written) < moved.rows - 1999
    assert await sums(rt.db) == await sums(source)
    assert await move_database(source, rt.db, silent) == MoveResult(
        moved.tables, moved.rows, resumed=True
    )  # nothing left to do


@servers
async def test_rows_that_are_not_ours_are_not_added_to(source: Database, rt: Runtime) -> None:
    async with rt.db.write() as session:
        await session.execute(
            insert(LinkTotals),
            [{"link_id": number, "total_clicks": 7, "bot_clicks": 7} for number in (1, 2)],
        )
    with pytest.raises(TargetNotEmpty, match="link_totals"):
        await move_database(source, rt.db, silent)

    await move_database(source, rt.db, silent, again=True)
    assert await sums(rt.db) == await sums(source)


@servers
async def test_only_from_sqlite_to_a_server(source: Database, rt: Runtime) -> None:
    with pytest.raises(UnsupportedTarget):
        await move_database(source, source, silent)
    with pytest.raises(UnsupportedSource):
        await move_database(rt.db, source, silent)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_the_commands(database: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data):
        assert (
            refract(
                "shorten", "https://example.com/", "--name", "here", "--data-dir", str(data)
            ).returncode
            == 0
        )
        refused = refract("move", "--to", database, "--data-dir", str(data))
        assert refused.returncode == 1
        assert "A server is running" in refused.stderr
        saved = refract("backup", str(tmp_path / "b.zip"), "--data-dir", str(data))
        assert saved.returncode == 0, saved.stderr
    moved = refract("move", "--to", database, "--data-dir", str(data))
    assert moved.returncode == 0, moved.stderr
    assert "Every table matches" in moved.stdout

    assert (
        "here "
        in refract(
            "links", "list", "--data-dir", str(data), REFRACT_DATABASE_URL=database
        ).stdout.lower()
    )
    whole = refract("restore", str(tmp_path / "b.zip"), "--check", "--data-dir", str(data))
    assert (whole.returncode, "is complete" in whole.stdout) == (0, True)
    back = refract("restore", str(tmp_path / "b.zip"), "--data-dir", str(tmp_path / "new"))
    assert back.returncode == 0, back.stderr
    assert "here " in refract("links", "list", "--data-dir", str(tmp_path / "new")).stdout.lower()


@servers
async def test_an_emptied_source_table_is_noticed(source: Database, rt: Runtime) -> None:
    await move_database(source, rt.db, silent)
    async with source.write() as session:
        await session.execute(delete(LinkTotals))

    with pytest.raises(TargetNotEmpty):
        await move_database(source, rt.db, silent)
