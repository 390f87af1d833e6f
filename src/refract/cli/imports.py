"""`refract import`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, BinaryIO, ClassVar

import typer

from refract.cli.common import get_acting_user
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
from refract.core.text import make_excerpt
from refract.links.imports import (
    Candidate,
    LinkFileFormat,
    LinkImporter,
    LinkImportOutcome,
    LinkImportResult,
    LinkRows,
    NameConflictPolicy,
    open_link_file,
)
from refract.links.imports.columns import parse_mapping
from refract.links.imports.importer import BATCH_SIZE
from refract.links.imports.rows import LinkRow
from refract.links.imports.runs import LinkImportRecorder
from refract.names.service import namespace_of

app = typer.Typer(help="Import links and bookmarks from a file.", no_args_is_help=True)
Conflict = Annotated[
    NameConflictPolicy,
    typer.Option(
        "--on-conflict",
        help=(
            "When a name already has another destination: skip the row, import it as name-2, or"
            " count it as failed."
        ),
    ),
]


@app.callback()
def _import() -> None:
    """Make `links` a subcommand; a group with one command would run it directly."""


@app.command("links")
def links(
    file: File,
    *,
    kind: Annotated[
        LinkFileFormat, typer.Option("--from", help="Program that wrote the file; auto detects it.")
    ] = LinkFileFormat.AUTO,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="In a table of an unknown system: a field and its heading. Guessed by default.",
            metavar="FIELD=HEADING",
        ),
    ] = None,
    dry_run: DryRun = False,
    conflict: Conflict = NameConflictPolicy.SKIP,
    report: ReportTo = None,
    verbose: Verbose = False,
    encoding: Encoding = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Import links from a file.

    Existing links are skipped, so an import can be repeated and resumed.
    """
    outcomes, unread = _LinkReport(verbose=verbose), list[str]()

    async def begin(rt: Runtime, stream: BinaryIO) -> OpenImport[Candidate, LinkImportResult]:
        owner = await get_acting_user(rt, user)
        mapping = parse_mapping(column or ())
        rows = open_link_file(stream, rt.clock.now(), kind, encoding, mapping)
        importer = LinkImporter(
            rt, namespace_of(rt), owner, conflict=conflict, dry_run=dry_run, keep_ids=True
        )
        recorder = None if dry_run else LinkImportRecorder(rt, owner.id, file.name)
        turn = _CommandImport(rt, rows, importer, recorder, outcomes)

        async def end(complete: bool) -> None:
            unread.extend(rows.unread)
            outcomes.columns_read = rows.mapping
            await turn.end(complete)

        return OpenImport(rows, turn.import_batch, BATCH_SIZE, end)

    import_file(ImportOptions(file, dry_run, report, data_dir), outcomes, begin)
    if unread:
        typer.secho(
            f"Ignored unknown columns: {make_excerpt(', '.join(unread), 200)}.",
            fg="yellow",
            err=True,
        )
    outcomes.print_summary(dry_run=dry_run)
    if outcomes.counts[LinkImportOutcome.REFUSED]:
        raise typer.Exit(1)


class _CommandImport:
    """An import that runs in this process instead of a worker. A dry run has no recorder."""

    def __init__(
        self,
        rt: Runtime,
        rows: LinkRows,
        importer: LinkImporter,
        recorder: LinkImportRecorder | None,
        report: "_LinkReport",
    ) -> None:
        self._rt, self._rows, self._importer = rt, rows, importer
        self._recorder, self._report = recorder, report

    async def import_batch(self, batch: Sequence[LinkRow]) -> list[LinkImportResult]:
        if self._recorder is None:
            return await self._importer.import_batch(batch)
        record = self._recorder.build_record(self._rows.kind)
        results = await self._importer.import_batch(batch, record)
        self._recorder.confirm()
        self._report.import_id = self._recorder.import_id
        return results

    async def end(self, complete: bool) -> None:
        if self._recorder is not None:
            await self._recorder.end(complete=complete)
            await self._rt.db.update_statistics()


class _LinkReport(ImportReport[LinkImportResult]):
    words: ClassVar = {outcome: str(outcome) for outcome in LinkImportOutcome}
    left_out = frozenset({LinkImportOutcome.REFUSED, LinkImportOutcome.SKIPPED})
    columns = ("where", "outcome", "why", "names", "destination")

    def __init__(self, *, verbose: bool) -> None:
        super().__init__(verbose=verbose)
        self.import_id: int | None = None
        self.columns_read: Mapping[str, str] = {}
        self._remarks: Counter[str] = Counter()

    def add(self, results: Sequence[LinkImportResult]) -> None:
        for result in results:
            outcome, row = result.outcome, result.row
            self._remarks.update(result.remarks if outcome is LinkImportOutcome.CREATED else ())
            cells = (row.where, result.why or "", "|".join(row.names), row.text)
            self.note(outcome, _format_result(result), cells, report=outcome in self.left_out)

    def print_summary(self, *, dry_run: bool) -> None:
        super().print_summary(dry_run=dry_run)
        if self.import_id is not None and self.counts[LinkImportOutcome.CREATED]:
            typer.echo(f"Undo with: refract import rollback {self.import_id}", err=True)

    def print_remarks(self) -> None:
        for field, heading in self.columns_read.items():
            self.console.print(f'Read {field} from the column "{make_excerpt(heading)}".')
        for remark, count in self._remarks.most_common(MAX_PRINTED):
            self.console.print(f"{count:,} × {make_excerpt(remark, 200)}")


def _format_result(result: LinkImportResult) -> str:
    name = ", ".join(result.names or result.row.names)
    what = (
        f"{make_excerpt(name)} → {make_excerpt(result.row.text, 80)}"
        if name
        else make_excerpt(result.row.text, 80)
    )
    remarks = (
        f" ({'; '.join(make_excerpt(remark, 200) for remark in result.remarks)})"
        if result.remarks
        else ""
    )
    return (
        f"{result.row.where}: {result.outcome}:"
        f" {what}{f': {make_excerpt(result.why, 300)}' if result.why else ''}{remarks}"
    )
