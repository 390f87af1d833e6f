"""`refract import library` and `refract export library`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar

import typer
from sqlalchemy import select

from refract.cli.common import get_acting_user, load_command_settings, run_on_data
from refract.cli.export import write_to_file, write_to_stdout
from refract.cli.file_import import (
    DryRun,
    Encoding,
    File,
    ImportOptions,
    ImportReport,
    OpenImport,
    ReportTo,
    Verbose,
    import_file,
)
from refract.cli.options import AsUser, DataDir
from refract.core.runtime import Runtime
from refract.core.text import make_excerpt
from refract.imports.models import ImportRow, ImportRun, RowOutcome
from refract.imports.payloads import enqueue_abandoned_import_check
from refract.imports.service import create_import, stop_running_import
from refract.library.export import LibraryExportFormat, stream_library
from refract.library.imports import Bookmark, BookmarkFileFormat, BookmarkRow, TagRow, open_rows
from refract.library.imports.decisions import SeenRows
from refract.library.imports.importer import (
    BATCH_SIZE,
    add_import_rows,
    import_batch,
    preview_rows,
)

RowReport = tuple[str, RowOutcome, str | None, str]
"""Place in the file, outcome, reason, and an excerpt."""
_COUNTED = ("imported", "duplicate", "skipped")


def import_library(
    file: File,
    *,
    kind: Annotated[
        BookmarkFileFormat,
        typer.Option("--from", help="Program that wrote the file; auto detects it."),
    ] = BookmarkFileFormat.AUTO,
    dry_run: DryRun = False,
    report: ReportTo = None,
    verbose: Verbose = False,
    encoding: Encoding = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Import bookmarks into the library.

    Existing URLs are skipped, so an import can be repeated and resumed.
    """
    outcomes = _ItemReport(verbose=verbose)

    async def begin_import(
        rt: Runtime, stream: BinaryIO
    ) -> OpenImport[Bookmark | TagRow, RowReport]:
        rows = open_rows(stream, kind, encoding)
        owner = await get_acting_user(rt, user)
        if dry_run:
            return OpenImport(rows, _DryRun(rt, owner.id).batch, BATCH_SIZE)
        importer = _LibraryImporter(rt, owner.id, lambda: rows.kind, file.name, outcomes)
        return OpenImport(rows, importer.batch, BATCH_SIZE, importer.end)

    import_file(ImportOptions(file, dry_run, report, data_dir), outcomes, begin_import)
    outcomes.print_summary(dry_run=dry_run)
    if outcomes.counts[RowOutcome.REFUSED]:
        raise typer.Exit(1)


def export_library(
    form: Annotated[
        LibraryExportFormat,
        typer.Option(
            "--format", help="json with everything, or html, a bookmark file for browsers."
        ),
    ] = LibraryExportFormat.JSON,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write. Default: standard output."),
    ] = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Export a user's library. `refract import library` reads the file."""
    settings = load_command_settings(data_dir)

    async def run(rt: Runtime, write: Callable[[str], object]) -> int:
        owner = await get_acting_user(rt, user)
        async for piece in stream_library(rt, owner.id, form):
            write(piece)
        return 0

    if output is None:
        write_to_stdout(lambda write: run_on_data(settings, lambda rt: run(rt, write)))
    else:
        write_to_file(output, lambda write: run_on_data(settings, lambda rt: run(rt, write)))
        typer.echo(f"Wrote the library to {output}.", err=True)


class _ItemReport(ImportReport[RowReport]):
    words: ClassVar = {
        RowOutcome.CREATED: "imported",
        RowOutcome.EXISTS: "duplicate",
        RowOutcome.REFUSED: "skipped",
    }
    left_out = frozenset({RowOutcome.REFUSED})
    columns = ("where", "outcome", "why", "what")

    def __init__(self, *, verbose: bool) -> None:
        super().__init__(verbose=verbose)
        self.import_id: int | None = None

    def add(self, results: Sequence[RowReport]) -> None:
        for where, outcome, why, what in results:
            sentence = (
                f"{where}: {self.words[outcome]}:"
                f" {make_excerpt(what, 80)}{f': {make_excerpt(why, 300)}' if why else ''}"
            )
            self.note(
                outcome,
                sentence,
                (where, why or "", what),
                report=outcome is not RowOutcome.CREATED,
            )

    def print_summary(self, *, dry_run: bool) -> None:
        super().print_summary(dry_run=dry_run)
        if self.import_id is not None and self.counts[RowOutcome.CREATED]:
            typer.echo(f"Undo with: refract import rollback {self.import_id}", err=True)


class _LibraryImporter:
    """An import that runs in this process instead of a worker."""

    def __init__(
        self,
        rt: Runtime,
        user_id: int,
        kind: Callable[[], BookmarkFileFormat],
        name: str,
        report: _ItemReport,
    ) -> None:
        self._rt, self._user_id, self._kind, self._name, self._report = (
            rt,
            user_id,
            kind,
            name,
            report,
        )

    async def batch(self, rows: Sequence[BookmarkRow]) -> list[RowReport]:
        async with self._rt.db.write() as session:
            number = self._report.import_id
            if number is None:
                made = await create_import(
                    session, self._rt, self._user_id, self._kind(), self._name
                )
                await enqueue_abandoned_import_check(session, self._rt, made)
                number = made.id
            record = await session.get_one(ImportRun, number)
            first = record.total + 1
            await add_import_rows(session, record, rows)
        self._report.import_id = number
        await import_batch(self._rt, number)
        async with self._rt.db.read() as session:
            done = (
                select(ImportRow)
                .where(ImportRow.import_id == number, ImportRow.number >= first)
                .order_by(ImportRow.number)
            )
            return [
                (row.place, RowOutcome(row.outcome), row.why, row.shown)
                for row in await session.scalars(done)
            ]

    async def end(self, _complete: bool) -> None:
        """Import the rows that were read, also after an interruption."""
        number = self._report.import_id
        if number is not None and await import_batch(self._rt, number):
            async with self._rt.db.write() as session:
                await stop_running_import(
                    session, await session.get_one(ImportRun, number), self._rt.clock.now()
                )


class _DryRun:
    """An import that only reports what it would do."""

    def __init__(self, rt: Runtime, user_id: int) -> None:
        self._rt, self._user_id, self._earlier = rt, user_id, SeenRows()

    async def batch(self, rows: Sequence[BookmarkRow]) -> list[RowReport]:
        async with self._rt.db.read() as session:
            verdicts = await preview_rows(
                session, self._user_id, rows, self._earlier, self._rt.clock.now()
            )
        return [
            (row.where, verdict.outcome, verdict.why, row.text)
            for row, verdict in zip(rows, verdicts, strict=True)
        ]
