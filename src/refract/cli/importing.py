"""What every import from a file shares: options, the way to the end of the file, being stopped, and the account of it."""

import asyncio
import csv
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Generic, Protocol, TextIO, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from refract.cli.common import command_settings, on_data
from refract.core.cells import defused
from refract.core.errors import Malformed
from refract.core.runtime import Runtime
from refract.core.text import shown

SHOWN = 20
INTERRUPTED = 130
_CELL = 2048
File = Annotated[Path, typer.Argument(help="The file to read; - is standard input.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")]
ReportTo = Annotated[Path | None, typer.Option("--report", help="Write the rows that were left out to this CSV file.", metavar="FILE")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say of every row what became of it.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Such as cp1252.", show_default="utf-8")]
Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)
Result = TypeVar("Result")


class CannotOpen(Malformed):
    """The file {path} cannot be opened: {why}."""


class Rows(Protocol[Row_co]):
    """The rows of a file, and how many bytes of it have been read."""

    @property
    def position(self) -> int: ...
    def __iter__(self) -> Iterator[Row_co]: ...


@dataclass(frozen=True, slots=True)
class Errand:
    """What somebody asked for, whatever the rows become."""

    file: Path
    dry_run: bool
    report: Path | None
    data_dir: Path | None


@dataclass(frozen=True, slots=True)
class Load(Generic[Row, Result]):
    """An open file, and what brings its rows. `end` runs whatever happens."""

    rows: Rows[Row]
    batch: Callable[[Sequence[Row]], Coroutine[Any, Any, list[Result]]]
    size: int
    end: Callable[[], Coroutine[Any, Any, None]] | None = None


class Account(Generic[Result]):
    """What became of the rows so far: counted, told, and written to the report. A kind of import says how each is told."""

    words: ClassVar[Mapping[Any, str]]
    """Every outcome, as the summary calls it."""
    left_out: ClassVar[frozenset[Any]]
    """The outcomes that nobody wished for."""
    columns: ClassVar[Sequence[str]]

    def __init__(self, *, verbose: bool) -> None:
        self.counts: Counter[Any] = Counter()
        self.console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        self._verbose = verbose
        self._told = 0
        self._report: Any = None

    def add(self, results: Sequence[Result]) -> None:
        raise NotImplementedError

    def report_to(self, file: TextIO) -> None:
        self._report = csv.writer(file)
        self._report.writerow(self.columns)

    @property
    def rows(self) -> int:
        return self.counts.total()

    def progress(self, size: int | None) -> Progress:
        """A bar for people; nothing where nobody watches."""
        bar = Progress(
            TextColumn("Importing"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[rows]:,} rows"),
            TimeRemainingColumn(), console=self.console, disable=not self.console.is_terminal, transient=True,
        )  # fmt: skip
        bar.add_task("rows", total=size, rows=0)
        return bar

    def note(self, outcome: Any, sentence: str, cells: Iterable[str], *, report: bool) -> None:
        """Count a row; tell of it if it was left out and not too many were, or if everything is to be told."""
        self.counts[outcome] += 1
        left_out = outcome in self.left_out
        if report and self._report:
            where, *rest = cells
            self._report.writerow([where, self.words[outcome], *(defused(shown(text, _CELL)) for text in rest)])
        if self._verbose or (left_out and self._told < SHOWN):
            self._told += left_out
            self.console.print(sentence)

    def summary(self, *, dry_run: bool) -> None:
        left_out = sum(self.counts[outcome] for outcome in self.left_out)
        if not self._verbose and left_out > self._told:
            more = "they are all in the report" if self._report else "--report FILE writes them all to a file"
            self.console.print(f"… and {left_out - self._told:,} more: {more}.")
        self.remark()
        done = ", ".join(f"{self.counts[outcome]:,} {word}" for outcome, word in self.words.items())
        typer.echo(f"{'Dry run, nothing was changed. ' if dry_run else ''}{self.rows:,} {'row' if self.rows == 1 else 'rows'}: {done}.")

    def remark(self) -> None:
        """What else there is to say before the counts."""


def carry_out(errand: Errand, account: Account[Result], begin: Callable[[Runtime, BinaryIO], Awaitable[Load[Row, Result]]]) -> None:
    """Bring a file to its end, batch by batch. Stopped on the way, it says what is done, and the command ends."""
    settings = command_settings(errand.data_dir)
    with ExitStack() as stack:
        stream, size = _opened(errand.file, stack)
        if errand.report:
            account.report_to(stack.enter_context(_written(errand.report)))

        async def run(rt: Runtime) -> None:
            load = await begin(rt, stream)
            try:
                with account.progress(size) as bar:
                    every = iter(load.rows)
                    while some := list(islice(every, load.size)):
                        await _to_its_end(load.batch(some), account.add)
                        bar.update(TaskID(0), completed=load.rows.position, rows=account.rows)
            finally:
                if load.end is not None:
                    await asyncio.shield(load.end())

        try:
            on_data(settings, run)
        except KeyboardInterrupt:
            account.summary(dry_run=errand.dry_run)
            done = "What is done stays. Run the same command again to go on: rows that are here are left alone."
            typer.secho(f"Stopped. {'Nothing was changed.' if errand.dry_run else done}", fg="yellow", err=True)
            raise typer.Exit(INTERRUPTED) from None


async def _to_its_end(batch: Coroutine[Any, Any, list[Result]], add: Callable[[list[Result]], None]) -> None:
    """Whoever stops the import waits for the batch at hand: cut off around its commit, nobody could say whether it is in."""
    task = asyncio.ensure_future(batch)
    try:
        await asyncio.shield(task)
    finally:
        add(await task)


def _opened(file: Path, stack: ExitStack) -> tuple[BinaryIO, int | None]:
    if str(file) == "-":
        return sys.stdin.buffer, None
    try:
        return stack.enter_context(file.open("rb")), file.stat().st_size
    except OSError as wrong:
        raise CannotOpen(path=file, why=wrong.strerror or str(wrong)) from wrong


def _written(report: Path) -> TextIO:
    try:
        return report.open("w", encoding="utf-8", newline="")
    except OSError as wrong:
        raise CannotOpen(path=report, why=wrong.strerror or str(wrong)) from wrong
