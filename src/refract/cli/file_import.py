"""Commands that import a file: their options, progress, interruption and report."""

import asyncio
import csv
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Generic, TextIO, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from refract.cli.common import load_command_settings, run_on_data
from refract.core.errors import Malformed
from refract.core.runtime import Runtime
from refract.core.text import count_noun, escape_formula, make_excerpt
from refract.records.reader import RowReader, UnreadableRow

MAX_PRINTED = 20
_INTERRUPTED = 130
_MAX_CELL = 2048
File = Annotated[Path, typer.Argument(help="File to read, or - for standard input.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would happen without changing anything.")
]
ReportTo = Annotated[
    Path | None,
    typer.Option("--report", help="Write skipped rows to this CSV file.", metavar="FILE"),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print the result of every row.")]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Encoding of the file, such as cp1252.", show_default="utf-8"),
]
Row = TypeVar("Row")
Result = TypeVar("Result")


class FileOpenFailed(Malformed):
    """Can't open {path}: {why}."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options that every import has."""

    file: Path
    dry_run: bool
    report: Path | None
    data_dir: Path | None


@dataclass(frozen=True, slots=True)
class OpenImport(Generic[Row, Result]):
    """An open file, and the function that imports a batch of its rows.

    `end` runs in any case, with whether the whole file was imported.
    """

    rows: RowReader[Row]
    batch: Callable[[Sequence[Row | UnreadableRow]], Coroutine[Any, Any, list[Result]]]
    batch_size: int
    end: Callable[[bool], Coroutine[Any, Any, None]] | None = None


class ImportReport(Generic[Result]):
    """The outcomes of the rows so far: counted, printed, and written to a file.

    A subclass words them.
    """

    words: ClassVar[Mapping[Any, str]]
    """Every outcome, as the summary calls it."""
    left_out: ClassVar[frozenset[Any]]
    """Outcomes of rows that were not imported and should have been."""
    columns: ClassVar[Sequence[str]]

    def __init__(self, *, verbose: bool) -> None:
        self.counts: Counter[Any] = Counter()
        self.console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        self._verbose = verbose
        self._printed = 0
        self._report: Any = None

    def add(self, results: Sequence[Result]) -> None:
        """Note the results of a batch."""
        raise NotImplementedError

    def write_to(self, file: TextIO) -> None:
        """Also write rows as CSV to this file."""
        self._report = csv.writer(file)
        self._report.writerow(self.columns)

    @property
    def rows(self) -> int:
        return self.counts.total()

    def progress(self, size: int | None) -> Progress:
        """Return a progress bar, which only a terminal shows."""
        bar = Progress(
            TextColumn("Importing"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[rows]:,} rows"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )
        bar.add_task("rows", total=size, rows=0)
        return bar

    def note(self, outcome: Any, sentence: str, cells: Iterable[str], *, report: bool) -> None:
        """Count a row; print it if it is one of the first left out, or if everything is printed."""
        self.counts[outcome] += 1
        left_out = outcome in self.left_out
        if report and self._report:
            where, *rest = cells
            self._report.writerow(
                [
                    where,
                    self.words[outcome],
                    *(escape_formula(make_excerpt(text, _MAX_CELL)) for text in rest),
                ]
            )
        if self._verbose or (left_out and self._printed < MAX_PRINTED):
            self._printed += left_out
            self.console.print(sentence)

    def print_summary(self, *, dry_run: bool) -> None:
        left_out = sum(self.counts[outcome] for outcome in self.left_out)
        if not self._verbose and left_out > self._printed:
            more = (
                "The report lists them all."
                if self._report
                else "Use --report FILE to list them all."
            )
            self.console.print(f"… and {left_out - self._printed:,} more. {more}")
        self.print_remarks()
        done = ", ".join(f"{self.counts[outcome]:,} {word}" for outcome, word in self.words.items())
        typer.echo(
            f"{'Dry run, nothing was changed. ' if dry_run else ''}"
            f"{count_noun(self.rows, 'row')}: {done}."
        )

    def print_remarks(self) -> None:
        """Print what else there is to say before the counts."""


def import_file(
    options: ImportOptions,
    report: ImportReport[Result],
    begin: Callable[[Runtime, BinaryIO], Awaitable[OpenImport[Row, Result]]],
) -> None:
    """Import a file batch by batch. Interrupted, print what is done and exit the command."""
    settings = load_command_settings(options.data_dir)
    with ExitStack() as stack:
        stream, size = _open_input(options.file, stack)
        if options.report:
            report.write_to(stack.enter_context(_open_report(options.report)))

        async def run(rt: Runtime) -> None:
            opened, complete = await begin(rt, stream), False
            try:
                with report.progress(size) as bar:
                    rows = iter(opened.rows)
                    while batch := list(islice(rows, opened.batch_size)):
                        await _finish_batch(opened.batch(batch), report.add)
                        bar.update(TaskID(0), completed=opened.rows.position, rows=report.rows)
                complete = True
            finally:
                if opened.end is not None:
                    await asyncio.shield(opened.end(complete))

        try:
            run_on_data(settings, run)
        except KeyboardInterrupt:
            report.print_summary(dry_run=options.dry_run)
            done = "Imported rows stay. Run the same command again to resume; they are skipped."
            typer.secho(
                f"Stopped. {'Nothing was changed.' if options.dry_run else done}",
                fg="yellow",
                err=True,
            )
            raise typer.Exit(_INTERRUPTED) from None


async def _finish_batch(
    batch: Coroutine[Any, Any, list[Result]], add: Callable[[list[Result]], None]
) -> None:
    """Finish a batch even if cancelled, so that it is known whether it was committed."""
    task = asyncio.ensure_future(batch)
    try:
        await asyncio.shield(task)
    finally:
        add(await task)


def _open_input(file: Path, stack: ExitStack) -> tuple[BinaryIO, int | None]:
    if str(file) == "-":
        return sys.stdin.buffer, None
    try:
        return stack.enter_context(file.open("rb")), file.stat().st_size
    except OSError as exc:
        raise FileOpenFailed(path=file, why=exc.strerror or str(exc)) from exc


def _open_report(report: Path) -> TextIO:
    try:
        return report.open("w", encoding="utf-8", newline="")
    except OSError as exc:
        raise FileOpenFailed(path=report, why=exc.strerror or str(exc)) from exc
