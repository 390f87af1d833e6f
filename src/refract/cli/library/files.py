"""`refract import library`, `refract import list`, `refract import rollback` and `refract export library`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar

import typer
from rich.table import Table
from sqlalchemy import select

from refract.cli.common import BadValue, acting, command_settings, on_data
from refract.cli.export import to_file, to_standard_output
from refract.cli.file_import import DryRun, Encoding, File, ImportOptions, ImportReport, OpenImport, ReportTo, Verbose, import_file
from refract.cli.links.shown import console, day, safe
from refract.cli.options import AsUser, DataDir
from refract.core.runtime import Runtime
from refract.core.schema import read_id
from refract.core.text import shown
from refract.library.errors import ImportNotFound
from refract.library.exporting import Format, library_as
from refract.library.import_jobs import end_if_abandoned
from refract.library.import_models import Import, ImportRow, RowOutcome
from refract.library.importing import Bookmark, BookmarkRow, Kind, TagRow, open_rows
from refract.library.importing.bring import BATCH, add_rows, begin, bring_batch, stop, try_out
from refract.library.importing.judging import Earlier
from refract.library.importing.rollback import begin_rollback, roll_back_slice

Told = tuple[str, RowOutcome, str | None, str]
"""Where, what became of it, why, and enough of it to recognise it."""


def import_library(
    file: File,
    *,
    kind: Annotated[Kind, typer.Option("--from", help="What wrote the file; auto finds out.")] = Kind.AUTO,
    dry_run: DryRun = False,
    report: ReportTo = None,
    verbose: Verbose = False,
    encoding: Encoding = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Bring bookmarks into the library. Addresses that are here already are left alone, so it can be repeated and resumed."""
    outcomes = _ItemReport(verbose=verbose)

    async def begin_import(rt: Runtime, stream: BinaryIO) -> OpenImport[Bookmark | TagRow, Told]:
        rows = open_rows(stream, kind, encoding)
        owner = await acting(rt, user)
        if dry_run:
            return OpenImport(rows, _Trying(rt, owner.id).batch, BATCH)
        bringing = _Bringing(rt, owner.id, lambda: rows.kind, file.name, outcomes)
        return OpenImport(rows, bringing.batch, BATCH, bringing.end)

    import_file(ImportOptions(file, dry_run, report, data_dir), outcomes, begin_import)
    outcomes.print_summary(dry_run=dry_run)
    if outcomes.counts[RowOutcome.REFUSED]:
        raise typer.Exit(1)


def list_imports(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")] = 20,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """List the imports into the library, the latest first, with the numbers that a roll-back needs."""

    async def run(rt: Runtime) -> list[Import]:
        owner = await acting(rt, user)
        async with rt.db.read() as session:
            mine = select(Import).where(Import.user_id == owner.id).order_by(Import.id.desc()).limit(limit)
            return list(await session.scalars(mine))

    found = on_data(command_settings(data_dir), run)
    if not found:
        typer.echo("No imports yet. Bring bookmarks with: refract import library FILE")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("id", "file", "when", "state", "rows", "created", "here already", "refused"):
        table.add_column(heading, no_wrap=True, justify="right" if heading in ("rows", "created", "here already", "refused") else "left")
    for one in found:
        state = one.status.lower().replace("_", " ")
        counts = (f"{number:,}" for number in (one.total, one.created, one.existing, one.refused))
        table.add_row(str(one.id), safe(one.name, 60), day(one.created_at), state, *counts)
    console().print(table)


def roll_back(
    import_id: Annotated[str, typer.Argument(help="The number that the import told.", metavar="ID")],
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Remove every item that an import brought, and the tags that came with it alone."""
    try:
        number = read_id(import_id)
    except ValueError as wrong:
        raise BadValue(problem=f'"{shown(import_id, 80)}" is not the number of an import: refract import list shows them.') from wrong

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


class _ItemReport(ImportReport[Told]):
    words: ClassVar = {RowOutcome.CREATED: "created", RowOutcome.EXISTS: "already here", RowOutcome.REFUSED: "refused"}
    left_out = frozenset({RowOutcome.REFUSED})
    columns = ("where", "outcome", "why", "what")

    def __init__(self, *, verbose: bool) -> None:
        super().__init__(verbose=verbose)
        self.import_id: int | None = None

    def add(self, results: Sequence[Told]) -> None:
        for where, outcome, why, what in results:
            sentence = f"{where}: {self.words[outcome]}: {shown(what, 80)}{f': {shown(why, 300)}' if why else ''}"
            self.note(outcome, sentence, (where, why or "", what), report=outcome is not RowOutcome.CREATED)

    def print_summary(self, *, dry_run: bool) -> None:
        super().print_summary(dry_run=dry_run)
        if self.import_id is not None and self.counts[RowOutcome.CREATED]:
            typer.echo(f"`refract import rollback {self.import_id}` takes it back.", err=True)


class _Bringing:
    """An import that is worked on here and now, instead of by a worker."""

    def __init__(self, rt: Runtime, user_id: int, kind: Callable[[], Kind], name: str, report: _ItemReport) -> None:
        self._rt, self._user_id, self._kind, self._name, self._report = rt, user_id, kind, name, report

    async def batch(self, rows: Sequence[BookmarkRow]) -> list[Told]:
        async with self._rt.db.write() as session:
            number = self._report.import_id
            if number is None:
                number = (await begin(session, self._rt, self._user_id, self._kind(), self._name)).id
                await end_if_abandoned(session, self._rt, self._user_id, number)
            one = await session.get_one(Import, number)
            first = one.total + 1
            await add_rows(session, one, rows)
        self._report.import_id = number
        await bring_batch(self._rt, number)
        async with self._rt.db.read() as session:
            done = select(ImportRow).where(ImportRow.import_id == number, ImportRow.number >= first).order_by(ImportRow.number)
            return [(row.place, RowOutcome(row.outcome), row.why, row.shown) for row in await session.scalars(done)]

    async def end(self) -> None:
        """Everything that was read has been brought, also when somebody stopped it."""
        number = self._report.import_id
        if number is not None and await bring_batch(self._rt, number):
            async with self._rt.db.write() as session:
                await stop(session, await session.get_one(Import, number), self._rt.clock.now())


class _Trying:
    """A dry run."""

    def __init__(self, rt: Runtime, user_id: int) -> None:
        self._rt, self._user_id, self._earlier = rt, user_id, Earlier()

    async def batch(self, rows: Sequence[BookmarkRow]) -> list[Told]:
        async with self._rt.db.read() as session:
            verdicts = await try_out(session, self._user_id, rows, self._earlier, self._rt.clock.now())
        return [(row.where, verdict.outcome, verdict.why, row.text) for row, verdict in zip(rows, verdicts, strict=True)]
