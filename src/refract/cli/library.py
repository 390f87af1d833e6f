"""`refract import library`, `refract import rollback` and `refract export library`."""

import asyncio
import csv
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from sqlalchemy import select

from refract.cli.common import AsUser, BadValue, DataDir, acting, command_settings, on_data
from refract.cli.export import to_file, to_standard_output
from refract.cli.imports import INTERRUPTED, SHOWN, opened, written
from refract.core.cells import defused
from refract.core.runtime import Runtime
from refract.core.schema import read_id
from refract.core.text import shown
from refract.library.errors import ImportNotFound
from refract.library.exporting import Format, library_as
from refract.library.import_models import Import, ImportRow, RowOutcome
from refract.library.importing import Kind, Row, open_rows
from refract.library.importing.bring import BATCH, add_rows, begin, bring_batch, stop, try_out
from refract.library.importing.judging import Earlier
from refract.library.importing.rollback import begin_rollback, roll_back_slice

_WORDS = {RowOutcome.CREATED: "created", RowOutcome.EXISTS: "already here", RowOutcome.REFUSED: "refused"}
Told = tuple[str, RowOutcome, str | None, str]
"""Where, what became of it, why, and enough of it to recognise it."""


def import_library(
    file: Annotated[Path, typer.Argument(help="The file to read; - is standard input.")],
    *,
    kind: Annotated[Kind, typer.Option("--from", help="What wrote the file; auto finds out.")] = Kind.AUTO,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")] = False,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the rows that were left out to this CSV file.", metavar="FILE")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say of every row what became of it.")] = False,
    encoding: Annotated[str | None, typer.Option("--encoding", help="Such as cp1252.", show_default="utf-8")] = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Bring bookmarks into the library. Addresses that are here already are left alone, so it can be repeated and resumed."""
    settings = command_settings(data_dir)
    with ExitStack() as stack:
        stream, size = opened(file, stack)
        account = _Account(stack.enter_context(written(report)) if report else None, verbose=verbose)

        async def run(rt: Runtime) -> None:
            rows = open_rows(stream, kind, encoding)
            every = iter(rows)
            owner = await acting(rt, user)
            bringing = _Trying(rt, owner.id) if dry_run else _Bringing(rt, owner.id, lambda: rows.kind, file.name)
            try:
                with account.progress(size) as bar:
                    while some := list(islice(every, BATCH)):
                        await _to_its_end(bringing, some, account.add)
                        account.import_id = bringing.import_id
                        bar.update(TaskID(0), completed=rows.position, rows=account.rows)
            finally:
                await asyncio.shield(bringing.end())

        try:
            on_data(settings, run)
        except KeyboardInterrupt:
            account.summary(dry_run=dry_run)
            said = "Nothing was changed." if dry_run else "What is done stays. Run the same command again to go on."
            typer.secho(f"Stopped. {said}", fg="yellow", err=True)
            raise typer.Exit(INTERRUPTED) from None
    account.summary(dry_run=dry_run)
    if account.counts[RowOutcome.REFUSED]:
        raise typer.Exit(1)


def roll_back(
    import_id: Annotated[str, typer.Argument(help="The number that the import told.", metavar="ID")],
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Remove every item that an import brought, and the tags that came with it alone."""
    try:
        number = read_id(import_id)
    except ValueError as wrong:
        raise BadValue(problem=f'"{import_id}" is not the number of an import.') from wrong

    async def run(rt: Runtime) -> int:
        owner = await acting(rt, user)
        async with rt.db.write() as session:
            one = await session.scalar(select(Import).where(Import.id == number, Import.user_id == owner.id))
            if one is None:
                raise ImportNotFound
            created = (await begin_rollback(session, one, rt.clock.now())).created
        while await roll_back_slice(rt, number):
            pass
        return created

    removed = on_data(command_settings(data_dir), run)
    typer.echo(f"Rolled back: what the import brought ({removed:,} rows) is gone.")


def export_library(
    form: Annotated[Format, typer.Option("--format", help="json holds everything, html is a bookmark file for browsers.")] = Format.JSON,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write. Left out: standard output.")] = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Write a person's whole library. `refract import library` reads the file again."""
    settings = command_settings(data_dir)

    async def run(rt: Runtime, write: Callable[[str], object]) -> int:
        owner = await acting(rt, user)
        async for piece in library_as(rt, owner.id, form):
            write(piece)
        return 0

    if output is None:
        to_standard_output(lambda write: on_data(settings, lambda rt: run(rt, write)))
    else:
        to_file(output, lambda write: on_data(settings, lambda rt: run(rt, write)))
        typer.echo(f"Wrote the library to {output}.", err=True)


class _Bringing:
    """An import that is worked on here and now, instead of by a worker."""

    def __init__(self, rt: Runtime, user_id: int, kind: Callable[[], Kind], name: str) -> None:
        self._rt, self._user_id, self._kind, self._name = rt, user_id, kind, name
        self.import_id: int | None = None

    async def batch(self, rows: Sequence[Row]) -> list[Told]:
        async with self._rt.db.write() as session:
            if self.import_id is None:
                self.import_id = (await begin(session, self._rt, self._user_id, self._kind(), self._name)).id
            one = await session.get_one(Import, self.import_id)
            first = one.total + 1
            await add_rows(session, one, rows)
        await bring_batch(self._rt, self.import_id)
        async with self._rt.db.read() as session:
            done = select(ImportRow).where(ImportRow.import_id == self.import_id, ImportRow.number >= first).order_by(ImportRow.number)
            return [(row.place, RowOutcome(row.outcome), row.why, row.shown) for row in await session.scalars(done)]

    async def end(self) -> None:
        """Everything that was read has been brought, also when somebody stopped it."""
        if self.import_id is None:
            return
        if await bring_batch(self._rt, self.import_id):
            async with self._rt.db.write() as session:
                await stop(session, await session.get_one(Import, self.import_id), self._rt.clock.now())


class _Trying:
    """A dry run."""

    import_id: int | None = None

    def __init__(self, rt: Runtime, user_id: int) -> None:
        self._rt, self._user_id, self._earlier = rt, user_id, Earlier()

    async def batch(self, rows: Sequence[Row]) -> list[Told]:
        async with self._rt.db.read() as session:
            verdicts = await try_out(session, self._user_id, rows, self._earlier, self._rt.clock.now())
        return [(row.where, verdict.outcome, verdict.why, row.text) for row, verdict in zip(rows, verdicts, strict=True)]

    async def end(self) -> None:
        return


async def _to_its_end(bringing: _Bringing | _Trying, rows: Sequence[Row], add: Callable[[list[Told]], None]) -> None:
    """Whoever stops the import waits for the batch at hand."""
    task = asyncio.ensure_future(bringing.batch(rows))
    try:
        await asyncio.shield(task)
    finally:
        add(await task)


class _Account:
    """What became of the rows so far: counted, told, and written to the report."""

    def __init__(self, report: TextIO | None, *, verbose: bool) -> None:
        self.counts: Counter[RowOutcome] = Counter()
        self.import_id: int | None = None
        self._verbose = verbose
        self._told = 0
        self._console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        self._report = csv.writer(report) if report else None
        if self._report:
            self._report.writerow(["where", "outcome", "why", "what"])

    @property
    def rows(self) -> int:
        return self.counts.total()

    def progress(self, size: int | None) -> Progress:
        """A bar for people; nothing where nobody watches."""
        bar = Progress(
            TextColumn("Importing"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[rows]:,} rows"),
            console=self._console, disable=not self._console.is_terminal, transient=True,
        )  # fmt: skip
        bar.add_task("items", total=size, rows=0)
        return bar

    def add(self, results: Sequence[Told]) -> None:
        for where, outcome, why, what in results:
            self.counts[outcome] += 1
            refused = outcome is RowOutcome.REFUSED
            if self._report and outcome is not RowOutcome.CREATED:
                self._report.writerow([where, _WORDS[outcome], defused(shown(why or "", 500)), defused(shown(what, 500))])
            if self._verbose or (refused and self._told < SHOWN):
                self._told += refused
                self._console.print(f"{where}: {_WORDS[outcome]}: {shown(what, 80)}{f': {shown(why, 300)}' if why else ''}")

    def summary(self, *, dry_run: bool) -> None:
        if not self._verbose and self.counts[RowOutcome.REFUSED] > self._told:
            more = "they are all in the report" if self._report else "--report FILE writes them all to a file"
            self._console.print(f"… and {self.counts[RowOutcome.REFUSED] - self._told:,} more: {more}.")
        done = ", ".join(f"{self.counts[outcome]:,} {word}" for outcome, word in _WORDS.items())
        typer.echo(f"{'Dry run, nothing was changed. ' if dry_run else ''}{self.rows:,} {'row' if self.rows == 1 else 'rows'}: {done}.")
        if self.import_id is not None and self.counts[RowOutcome.CREATED]:
            typer.echo(f"`refract import rollback {self.import_id}` takes it back.", err=True)
