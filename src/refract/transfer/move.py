"""From SQLite to a server: every table, in the order of their keys, compared when it is done, and taken up again where it was cut off."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from refract import migrations
from refract.core.db import Database
from refract.core.errors import Conflict, Invalid
from refract.transfer.rows import Form, Sum, tables
from refract.transfer.store import NotTheSame, add_up, count, empty, filled, go_on_counting, lines, snapshot, write

Progress = Callable[[str, int, int], None]
"""Told of a table, the rows of it that are over, and all its rows."""


class NotFromHere(Invalid):
    """Only a SQLite installation can be moved; this one is on {dialect}. To copy it elsewhere, use backup and restore."""


class NotToThere(Invalid):
    """Move to a server: begin the address with postgresql:// or mysql://."""


class SomethingElseThere(Conflict):
    """The table {table} of the new database holds rows that are not the first ones of the old.

    Use an empty database, or --again to empty this one.
    """


@dataclass(frozen=True, slots=True)
class Moved:
    """What was carried over."""

    tables: int
    rows: int
    resumed: bool


async def move(source: Database, target: Database, progress: Progress, *, again: bool = False) -> Moved:
    """Copy and compare. Nobody can write to the source meanwhile; it is left as it was."""
    if source.dialect != "sqlite":
        raise NotFromHere(dialect=source.dialect)
    if target.dialect == "sqlite":
        raise NotToThere
    await migrations.upgrade(source)
    fresh = await migrations.current(target) is None
    await migrations.upgrade(target)
    rows, resumed = 0, False
    async with snapshot(source, alone=True) as old, target.engine.connect() as new:
        if fresh or again or not await filled(new):
            await empty(new)
        for model in tables():
            form = Form(model)
            sum_, already = await _carry(old, new, form, progress)
            rows += sum_.rows
            resumed = resumed or already > 0
            if (found := await add_up(new, form)) != sum_:
                raise NotTheSame(table=form.name, here=found.spelled, wanted=sum_.spelled)
            await new.rollback()
        await go_on_counting(target, new)
    return Moved(len(tables()), rows, resumed)


async def _carry(old: AsyncConnection, new: AsyncConnection, form: Form, progress: Progress) -> tuple[Sum, int]:
    """One table; the answer is what the old one adds up to, and how many rows were over before."""
    there = await add_up(new, form)
    await new.rollback()
    all_rows = await count(old, form)
    seen = Sum()
    if there.rows > all_rows:
        raise SomethingElseThere(table=form.name)
    progress(form.name, 0, all_rows)
    async for some in lines(old, form):
        begin = min(len(some), max(0, there.rows - seen.rows))
        for line in some[:begin]:
            seen.add(line)
        if begin and seen.rows == there.rows and seen != there:
            raise SomethingElseThere(table=form.name)
        await write(new, form, some[begin:])
        for line in some[begin:]:
            seen.add(line)
        progress(form.name, seen.rows, all_rows)
    return seen, there.rows
