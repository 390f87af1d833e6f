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
from refract.core.text import count_noun
from refract.identity import audit
from refract.identity.users import get_user_by_email
from refract.links.export import LinkExportFormat, LinkExportWriter, build_record, iter_card_pages

app = typer.Typer(help="Export links and the library.", no_args_is_help=True)


class FileWriteFailed(RefractError):
    """Can't write {path}: {why}."""


@app.callback()
def _export() -> None:
    """Make `links` a subcommand; a group with one command would run it directly."""


@app.command("links")
def links(
    form: Annotated[
        LinkExportFormat,
        typer.Option("--format", help="csv for spreadsheets, json or jsonl for programs."),
    ] = LinkExportFormat.CSV,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write. Default: standard output."),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", help="Only links of this user. Default: all links.", metavar="EMAIL"
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Export all links that are not deleted, oldest first.

    `refract import links` reads the file.
    """
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
        typer.echo(f"Wrote {count_noun(count, 'link')} to {output}.", err=True)


ExportWork = Callable[[Callable[[str], object]], int]


def write_to_stdout(work: ExportWork) -> None:
    """Write to standard output in UTF-8 in every locale. The reader may close the pipe."""
    sink = sys.stdout.buffer
    try:
        work(lambda text: sink.write(text.encode()))
        sink.flush()
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the interpreter flushes at its end


def write_to_file(path: Path, work: ExportWork) -> int:
    """Write a file that appears when it is complete and is readable only by its owner."""
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
