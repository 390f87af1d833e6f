"""`refract export`."""

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated

import typer

from refract.cli.common import get_acting_user, load_command_settings, run_on_data
from refract.cli.options import DataDir
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.users import get_user_by_email
from refract.links.export import LinkExportFormat, LinkExportWriter, build_record, iter_card_pages

app = typer.Typer(help="Write what is here into a file.", no_args_is_help=True)


class FileWriteFailed(RefractError):
    """Can't write {path}: {why}."""


@app.callback()
def _export() -> None:
    """Keeps `links` a command of its own, however few there are."""


@app.command("links")
def links(
    form: Annotated[
        LinkExportFormat,
        typer.Option("--format", help="csv for a spreadsheet, json or jsonl for programs."),
    ] = LinkExportFormat.CSV,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write. Left out: standard output."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", help="Only the links of this person. Left out: everybody's.", metavar="EMAIL"
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Write all links that are not deleted, oldest first. `refract import links` reads the file again."""
    settings = load_command_settings(data_dir)

    async def run(rt: Runtime, write: Callable[[str], object]) -> int:
        person = None
        if user is not None:
            async with rt.db.read() as session:
                person = (await get_user_by_email(session, user)).id
        await audit.record_export(
            rt, "links", by=(await get_acting_user(rt, None)).id, target=person
        )
        writer, count, now = LinkExportWriter(form), 0, rt.clock.now()
        write(writer.head())
        async for cards in iter_card_pages(rt, person):
            write(writer.page(build_record(card, now) for card in cards))
            count += len(cards)
        write(writer.tail())
        return count

    if output is None:
        write_to_stdout(lambda write: run_on_data(settings, lambda rt: run(rt, write)))
    else:
        count = write_to_file(
            output, lambda write: run_on_data(settings, lambda rt: run(rt, write))
        )
        typer.echo(f"Wrote {count:,} {'link' if count == 1 else 'links'} to {output}.", err=True)


ExportWork = Callable[[Callable[[str], object]], int]


def write_to_stdout(work: ExportWork) -> None:
    """UTF-8, whatever the terminal says; whoever reads may stop reading."""
    sink = sys.stdout.buffer
    try:
        work(lambda text: sink.write(text.encode()))
        sink.flush()
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the interpreter flushes once more at its end


def write_to_file(path: Path, work: ExportWork) -> int:
    """The file appears when it is complete, readable by its owner alone."""
    try:
        with NamedTemporaryFile(
            "w",
            encoding="utf-8",
            newline="",
            dir=path.parent,
            prefix=f".{path.name}.",
            delete=False,
        ) as file:
            try:
                count = work(file.write)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(file.name)  # noqa: PTH108 - a name, not a path of ours
                raise
        Path(file.name).replace(path)
    except OSError as exc:
        raise FileWriteFailed(path=path, why=exc.strerror or str(exc)) from exc
    return count
