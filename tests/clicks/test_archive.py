"""Archiving of old days: each event is in exactly one place at any moment, even after a crash."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from refract.clicks.archive import parquet as archive_parquet
from refract.clicks.archive import service
from refract.clicks.archive.jobs import ArchiveClicks, archive_clicks
from refract.clicks.archive.models import ArchiveFile
from refract.clicks.archive.parquet import open_connection
from refract.clicks.verify import reconcile
from refract.core.clock import ManualClock
from refract.core.db.bulk import insert_rows
from refract.core.runtime import Runtime
from tests.clicks.archiving import TABLE, archived, event, everything, fill, hot, read
from tests.clicks.counting import click, stored
from tests.client import on_sqlite

OLD = datetime(2026, 5, 20, tzinfo=UTC)
YOUNG = datetime(2026, 5, 26, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "BATCH_SIZES", {"sqlite": 40, "postgresql": 40, "mysql": 40})


async def files(rt: Runtime) -> list[ArchiveFile]:
    async with rt.db.read() as session:
        return list(
            await session.scalars(select(ArchiveFile).order_by(ArchiveFile.day, ArchiveFile.part))
        )


async def test_old_days_move_and_young_ones_stay(rt: Runtime) -> None:
    await fill(rt, OLD, 150)
    await fill(rt, OLD + timedelta(days=1), 5, first=200)
    await fill(rt, YOUNG, 30, first=300)
    before = await everything(rt)

    await archive_clicks(rt, ArchiveClicks())

    assert await everything(rt) == before
    assert len(await hot(rt)) == 30
    first, second = await files(rt)
    assert (first.day, first.events, second.events) == (OLD.date(), 150, 5)
    assert first.link_events == 150 - len(range(0, 150, 7))
    directory = service.ensure_directory(rt)
    assert first.size == (directory / first.name).stat().st_size
    assert (directory / first.name).stat().st_mode & 0o077 == 0


async def test_a_day_stays_whole_days_as_long_as_set(rt: Runtime, clock: ManualClock) -> None:
    await fill(rt, datetime(2026, 5, 25, tzinfo=UTC), 10)
    await service.archive_old_days(rt)  # it is noon of 1 June: a week ago is still within the day
    assert await files(rt) == []
    clock.advance(12 * 3600)
    await service.archive_old_days(rt)
    assert len(await files(rt)) == 1


async def test_a_late_click_makes_a_second_file_that_is_merged(rt: Runtime) -> None:
    await fill(rt, OLD, 60)
    await service.archive_old_days(rt)
    await fill(rt, OLD, 3, first=500)
    before = await everything(rt)

    await service.archive_old_days(rt)

    assert await everything(rt) == before
    assert await hot(rt) == []
    (only,) = await files(rt)
    assert only.events == 63


async def test_many_events_of_one_moment_move_together(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await insert_rows(
            session,
            TABLE,
            [event(OLD + timedelta(hours=number // 100), number) for number in range(200)],
        )
    before = await everything(rt)
    assert await service.archive_day(rt, OLD.date()) == 200
    assert await everything(rt) == before


async def test_a_click_that_arrives_in_between_is_not_lost(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late click falls into a slice after it was read: it must not be deleted unseen."""
    await fill(rt, OLD, 30)
    switch, late = service._commit_slice, [event(OLD + timedelta(hours=12), 900)]

    async def interrupted(*given: object) -> None:
        if late:
            async with rt.db.write() as session:
                await insert_rows(session, TABLE, [late.pop()])
        await switch(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(service, "_commit_slice", interrupted)
    await service.archive_old_days(rt)

    found = await everything(rt)
    assert len(found) == 31
    assert len({row[:3] for row in found}) == 31
    assert await hot(rt) == []


async def test_two_archivers_at_once_move_each_event_once(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second archiver does all its work between reading and commit of the first one."""
    await fill(rt, OLD, 90)
    before = await everything(rt)
    switch, second = service._commit_slice, [True]

    async def interrupted(*given: object) -> None:
        if second:
            second.pop()
            await service.archive_day(rt, OLD.date())
        await switch(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(service, "_commit_slice", interrupted)
    await service.archive_day(rt, OLD.date())
    assert await everything(rt) == before
    assert await hot(rt) == []


STEPS = [
    ("parquet.sync_path", "before"),
    ("parquet.build_source", "before"),
    ("service._commit_slice", "before"),
    ("service._commit_slice", "after"),
    ("service.merge_files", "after"),
    ("service._replace_files", "before"),
    ("service._replace_files", "after"),
    ("service.os.utime", "before"),
]


class Died(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize(("step", "when"), STEPS)
async def test_dying_at_any_step_leaves_each_event_in_one_place(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    await fill(rt, OLD, 100)
    before = await everything(rt)
    holder, _, name = step.rpartition(".")
    target = {"parquet": archive_parquet, "service": service, "service.os": os}[holder]
    real = getattr(target, name)
    with monkeypatch.context() as patched:
        if name.startswith("_"):

            async def die(*given: object) -> None:
                if when == "after":
                    await real(*given)
                raise Died

            patched.setattr(target, name, die)
        else:

            def fall(*given: object) -> None:
                if when == "after":
                    real(*given)
                raise Died

            patched.setattr(target, name, fall)
        with pytest.raises(Died):
            await service.archive_old_days(rt)

    assert await everything(rt) == before  # at the moment of death
    await service.archive_old_days(rt)
    await service.merge_day(rt, OLD.date())
    assert await everything(rt) == before  # and after another process has continued
    assert await hot(rt) == []
    assert sum(file.events for file in await files(rt)) == 100
    await service.sweep_files(rt, grace=-1)
    (only,) = await files(rt)
    assert [path.name for path in service.ensure_directory(rt).iterdir() if path.is_file()] == [
        only.name
    ]
    assert await everything(rt) == before


_CHILD = """
import asyncio, os, random, signal, sys
from pathlib import Path
from refract.clicks.archive import service
from refract.core.runtime import open_runtime
from refract.core.settings.model import Settings

async def main():
    service.BATCH_SIZES = dict.fromkeys(service.BATCH_SIZES, 40)
    directory, url, delay = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    settings = Settings(data_dir=directory, database_url=url, secret_key="s" * 40)
    async with open_runtime(settings, makes_ids=False) as rt:
        asyncio.get_running_loop().call_later(delay, os.kill, os.getpid(), signal.SIGKILL)
        print("go", flush=True)
        while True:
            await service.archive_old_days(rt)
            await asyncio.sleep(0.001)

asyncio.run(main())
"""


async def test_killed_at_random_moments(rt: Runtime) -> None:
    """SIGKILL a real process, then continue in another one."""
    await fill(rt, OLD, 600)
    before = await everything(rt)
    for number in range(3):
        delay = str(0.03 + 0.12 * number)
        url = rt.settings.effective_database_url
        command = [sys.executable, "-c", _CHILD, str(rt.settings.data_dir), url, delay]
        source = str(Path(service.__file__).parents[2])
        child = subprocess.run(  # noqa: ASYNC221 - nothing else runs here
            command, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": source}
        )
        assert child.returncode == -9, child.stderr.decode()
        assert await everything(rt) == before
    await service.archive_old_days(rt)
    assert await hot(rt) == []
    assert await everything(rt) == before


async def test_outlived_files_go_and_still_count(rt: Runtime, clock: ManualClock) -> None:
    await fill(rt, OLD, 50)
    await service.archive_old_days(rt)
    clock.advance((rt.settings.archive_days - 12) * 86_400)
    assert await service.drop_expired_files(rt) == 0
    clock.advance(86_400)

    assert await service.drop_expired_files(rt) == 1
    assert await service.drop_expired_files(rt) == 0
    assert await archived(rt) == []
    async with rt.db.read() as session:
        assert await session.scalar(select(func.sum(ArchiveFile.events))) == 50
    await service.sweep_files(rt, grace=-1)
    assert [path for path in service.ensure_directory(rt).iterdir() if path.is_file()] == []


@on_sqlite
async def test_sweeping_spares_what_is_not_ours_and_what_is_young(rt: Runtime) -> None:
    directory = service.ensure_directory(rt)
    (directory / "notes.parquet").write_text("somebody's own")
    (directory / "2026-05-20-1-abcd1234.parquet").write_text("of one who died a moment ago")
    assert await service.sweep_files(rt) == 0
    assert await service.sweep_files(rt, grace=-1) == 1
    assert [path.name for path in directory.iterdir()] == ["notes.parquet"]


async def test_what_was_archived_still_adds_up(rt: Runtime, clock: ManualClock) -> None:
    await stored(rt, [click(42, clock.now(), host=f"192.0.{number}.1") for number in range(30)])
    clock.advance(10 * 86_400)
    await stored(rt, [click(42, clock.now())])
    assert await service.archive_old_days(rt) == 30
    figures = await reconcile(rt)
    assert (figures.drift, figures.events, figures.link_events) == ([], 31, 31)
    (only,) = await files(rt)
    (service.ensure_directory(rt) / only.name).unlink()
    assert (await reconcile(rt)).drift == [f"The archive file {only.name} is missing."]


@on_sqlite
async def test_a_missing_file_is_named(rt: Runtime) -> None:
    await fill(rt, OLD, 5)
    await service.archive_old_days(rt)
    (only,) = await files(rt)
    (service.ensure_directory(rt) / only.name).unlink()
    with pytest.raises(service.ArchiveFileMissing, match=only.name):
        service.require_files(service.ensure_directory(rt), [only])


@on_sqlite
async def test_a_connection_sees_only_what_it_was_given(rt: Runtime, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.csv"
    elsewhere.write_text("a,b\n1,2\n")
    with open_connection(service.ensure_directory(rt)) as connection:
        for forbidden in (
            f"SELECT * FROM '{elsewhere}'",  # noqa: S608
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET memory_limit = '8GB'",
        ):
            with pytest.raises(Exception, match=r"(?i)permission|disabled|locked"):
                connection.execute(forbidden)


@on_sqlite
async def test_files_of_an_older_shape_are_read(rt: Runtime) -> None:
    """A column that was added later is empty in older files."""
    directory = service.ensure_directory(rt)
    await fill(rt, OLD, 3)
    await service.archive_old_days(rt)
    (new,) = await files(rt)
    with open_connection(directory) as connection:
        path = directory / "2026-05-19-1-00.parquet"
        connection.execute(
            f"COPY (SELECT * EXCLUDE (system_version) FROM '{directory / new.name}')"  # noqa: S608
            f" TO '{path}' (FORMAT parquet)"
        )
    rows = read(rt, [new.name, path.name])
    assert len(rows) == 6
    assert {len(row) for row in rows} == {len(archive_parquet.COLUMN_TYPES)}
