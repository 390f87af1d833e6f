"""`refract import`."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, BinaryIO, ClassVar

import typer

from refract.cli.common import acting
from refract.cli.file_import import (
    MAX_PRINTED,
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
from refract.core.text import shown
from refract.links.importing import Bringing, Candidate, Kind, OnConflict, Outcome, Result, open_rows
from refract.links.importing.bring import BATCH
from refract.names.service import namespace_of

app = typer.Typer(help="Bring links and bookmarks from a file.", no_args_is_help=True)
Conflict = Annotated[
    OnConflict,
    typer.Option("--on-conflict", help="When a name leads elsewhere already: leave the row out, call it name-2, or count it as failed."),
]


@app.callback()
def _import() -> None:
    """Keeps `links` a command of its own, however few there are."""


@app.command("links")
def links(
    file: File,
    *,
    kind: Annotated[Kind, typer.Option("--from", help="What wrote the file; auto finds out.")] = Kind.AUTO,
    dry_run: DryRun = False,
    conflict: Conflict = OnConflict.SKIP,
    report: ReportTo = None,
    verbose: Verbose = False,
    encoding: Encoding = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Make links of the rows of a file. Rows that are here already are left alone, so it can be repeated and resumed."""
    outcomes, unread = _LinkReport(verbose=verbose), list[str]()

    async def begin(rt: Runtime, stream: BinaryIO) -> OpenImport[Candidate, Result]:
        rows = open_rows(stream, rt.clock.now(), kind, encoding)
        bringing = Bringing(rt, namespace_of(rt), await acting(rt, user), conflict=conflict, dry_run=dry_run, keep_ids=True)

        async def end() -> None:
            unread.extend(rows.unread)

        return OpenImport(rows, bringing.batch, BATCH, end)

    import_file(ImportOptions(file, dry_run, report, data_dir), outcomes, begin)
    if unread:
        typer.secho(f"Columns that mean nothing here and were not read: {shown(', '.join(unread), 200)}.", fg="yellow", err=True)
    outcomes.print_summary(dry_run=dry_run)
    if outcomes.counts[Outcome.REFUSED]:
        raise typer.Exit(1)


class _LinkReport(ImportReport[Result]):
    words: ClassVar = {outcome: str(outcome) for outcome in Outcome}
    left_out = frozenset({Outcome.REFUSED, Outcome.SKIPPED})
    columns = ("where", "outcome", "why", "names", "destination")

    def __init__(self, *, verbose: bool) -> None:
        super().__init__(verbose=verbose)
        self._remarks: Counter[str] = Counter()

    def add(self, results: Sequence[Result]) -> None:
        for one in results:
            self._remarks.update(one.remarks if one.outcome is Outcome.CREATED else ())
            cells = (one.row.where, one.why or "", "|".join(one.row.names), one.row.text)
            self.note(one.outcome, _sentence(one), cells, report=one.outcome in self.left_out)

    def print_remarks(self) -> None:
        for remark, count in self._remarks.most_common(MAX_PRINTED):
            self.console.print(f"{count:,} × {shown(remark, 200)}")


def _sentence(one: Result) -> str:
    name = ", ".join(one.names or one.row.names)
    what = f"{shown(name)} → {shown(one.row.text, 80)}" if name else shown(one.row.text, 80)
    remarks = f" ({'; '.join(shown(remark, 200) for remark in one.remarks)})" if one.remarks else ""
    return f"{one.row.where}: {one.outcome}: {what}{f': {shown(one.why, 300)}' if one.why else ''}{remarks}"
