"""`refract import`."""

import asyncio
import csv
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from refract.cli.common import AsUser, DataDir, acting, command_settings, namespace, on_data
from refract.core.cells import defused
from refract.core.errors import Malformed
from refract.core.runtime import Runtime
from refract.core.text import shown
from refract.links.importing import Bringing, Kind, OnConflict, Outcome, Result, Row, Rows, open_rows
from refract.links.importing.bring import BATCH

app = typer.Typer(help="Bring links and bookmarks from a file.", no_args_is_help=True)
SHOWN = 20
INTERRUPTED = 130
_CELL = 2048


class CannotOpen(Malformed):
    """The file {path} cannot be opened: {why}."""


@app.callback()
def _import() -> None:
    """Keeps `links` a command of its own, however few there are."""


@app.command("links")
def links(
    file: Annotated[Path, typer.Argument(help="The file to read; - is standard input.")],
    *,
    kind: Annotated[Kind, typer.Option("--from", help="What wrote the file; auto finds out.")] = Kind.AUTO,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen, and change nothing.")] = False,
    conflict: Annotated[
        OnConflict,
        typer.Option(
            "--on-conflict", help="When a name leads elsewhere already: leave the row out, call it name-2, or count it as failed."
        ),
    ] = OnConflict.SKIP,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the rows that were left out to this CSV file.", metavar="FILE")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say of every row what became of it.")] = False,
    encoding: Annotated[str | None, typer.Option("--encoding", help="Such as cp1252.", show_default="utf-8")] = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Make links of the rows of a file. Rows that are here already are left alone, so it can be repeated and resumed."""
    settings = command_settings(data_dir)
    with ExitStack() as stack:
        stream, size = opened(file, stack)
        account = Account(stack.enter_context(written(report)) if report else None, verbose=verbose)

        async def run(rt: Runtime) -> Rows:
            rows = open_rows(stream, rt.clock.now(), kind, encoding)
            owner = await acting(rt, user)
            bringing = Bringing(rt, namespace(rt), owner, conflict=conflict, dry_run=dry_run, keep_ids=True)
            with account.progress(size) as shown_so_far:
                for some in _batches(rows):
                    await _to_its_end(bringing.batch(some), account.add)
                    shown_so_far.update(TaskID(0), completed=rows.position, rows=account.rows)
            return rows

        try:
            rows = on_data(settings, run)
        except KeyboardInterrupt:
            account.summary(dry_run=dry_run)
            said = (
                "Nothing was changed."
                if dry_run
                else "What is done stays. Run the same command again to go on: rows that are here are left alone."
            )
            typer.secho(f"Stopped. {said}", fg="yellow", err=True)
            raise typer.Exit(INTERRUPTED) from None
    if rows.unread:
        typer.secho(f"Columns that mean nothing here and were not read: {shown(', '.join(rows.unread), 200)}.", fg="yellow", err=True)
    account.summary(dry_run=dry_run)
    if account.counts[Outcome.REFUSED]:
        raise typer.Exit(1)


async def _to_its_end(batch: Coroutine[Any, Any, list[Result]], add: Callable[[list[Result]], None]) -> None:
    """Whoever stops the import waits for the batch at hand: cut off around its commit, nobody could say whether it is in."""
    task = asyncio.ensure_future(batch)
    try:
        await asyncio.shield(task)
    finally:
        add(await task)


def opened(file: Path, stack: ExitStack) -> tuple[BinaryIO, int | None]:
    if str(file) == "-":
        return sys.stdin.buffer, None
    try:
        return stack.enter_context(file.open("rb")), file.stat().st_size
    except OSError as wrong:
        raise CannotOpen(path=file, why=wrong.strerror or str(wrong)) from wrong


def written(report: Path) -> TextIO:
    try:
        return report.open("w", encoding="utf-8", newline="")
    except OSError as wrong:
        raise CannotOpen(path=report, why=wrong.strerror or str(wrong)) from wrong


def _batches(rows: Rows) -> Iterator[Sequence[Row]]:
    every = iter(rows)
    while some := list(islice(every, BATCH)):
        yield some


class Account:
    """What became of the rows so far: counted, told, and written to the report."""

    def __init__(self, report: TextIO | None, *, verbose: bool) -> None:
        self.counts: Counter[Outcome] = Counter()
        self._remarks: Counter[str] = Counter()
        self._verbose = verbose
        self._told = 0
        self._console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
        self._report = csv.writer(report) if report else None
        if self._report:
            self._report.writerow(["where", "outcome", "why", "names", "destination"])

    @property
    def rows(self) -> int:
        return self.counts.total()

    def progress(self, size: int | None) -> Progress:
        """A bar for people; nothing where nobody watches."""
        bar = Progress(
            TextColumn("Importing"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[rows]:,} rows"),
            TimeRemainingColumn(), console=self._console, disable=not self._console.is_terminal, transient=True,
        )  # fmt: skip
        bar.add_task("links", total=size, rows=0)
        return bar

    def add(self, results: Sequence[Result]) -> None:
        for one in results:
            self.counts[one.outcome] += 1
            self._remarks.update(one.remarks if one.outcome is Outcome.CREATED else ())
            left_out = one.outcome in (Outcome.REFUSED, Outcome.SKIPPED)
            if left_out and self._report:
                self._report.writerow([one.row.where, one.outcome, *(defused(shown(text, _CELL)) for text in _reported(one))])
            if self._verbose or (left_out and self._told < SHOWN):
                self._told += left_out
                self._console.print(_sentence(one))

    def summary(self, *, dry_run: bool) -> None:
        left_out = self.counts[Outcome.REFUSED] + self.counts[Outcome.SKIPPED]
        if not self._verbose and left_out > self._told:
            more = "they are all in the report" if self._report else "--report FILE writes them all to a file"
            self._console.print(f"… and {left_out - self._told:,} more: {more}.")
        for remark, count in self._remarks.most_common(SHOWN):
            self._console.print(f"{count:,} × {shown(remark, 200)}")
        done = ", ".join(f"{self.counts[one]:,} {one}" for one in Outcome)
        typer.echo(f"{'Dry run, nothing was changed. ' if dry_run else ''}{self.rows:,} {'row' if self.rows == 1 else 'rows'}: {done}.")


def _reported(one: Result) -> tuple[str, str, str]:
    return one.why or "", "|".join(one.row.names), one.row.text


def _sentence(one: Result) -> str:
    name = ", ".join(one.names or one.row.names)
    what = f"{shown(name)} → {shown(one.row.text, 80)}" if name else shown(one.row.text, 80)
    remarks = f" ({'; '.join(shown(remark, 200) for remark in one.remarks)})" if one.remarks else ""
    return f"{one.row.where}: {one.outcome}: {what}{f': {shown(one.why, 300)}' if one.why else ''}{remarks}"
