"""`refract export`."""

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated

import typer

from refract.cli.common import acting, command_settings, on_data
from refract.cli.options import DataDir
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.identity import audit
from refract.identity.people import person_by_email
from refract.links.exporting import Format, Writer, pages_of_cards, record

app = typer.Typer(help="Write what is here into a file.", no_args_is_help=True)


class CannotWrite(RefractError):
    """The file {path} cannot be written: {why}."""


@app.callback()
def _export() -> None:
    """Keeps `links` a command of its own, however few there are."""


@app.command("links")
def links(
    form: Annotated[Format, typer.Option("--format", help="csv for a spreadsheet, json or jsonl for programs.")] = Format.CSV,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write. Left out: standard output.")] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Only the links of this person. Left out: everybody's.", metavar="EMAIL")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Write all links that are not deleted, oldest first. `refract import links` reads the file again."""
    settings = command_settings(data_dir)

    async def run(rt: Runtime, write: Callable[[str], object]) -> int:
        person = None
        if user is not None:
            async with rt.db.read() as session:
                person = (await person_by_email(session, user)).id
        await audit.note_export(rt, "links", by=(await acting(rt, None)).id, target=person)
        writer, count, now = Writer(form), 0, rt.clock.now()
        write(writer.head())
        async for cards in pages_of_cards(rt, person):
            write(writer.page(record(card, now) for card in cards))
            count += len(cards)
        write(writer.tail())
        return count

    if output is None:
        to_standard_output(lambda write: on_data(settings, lambda rt: run(rt, write)))
    else:
        count = to_file(output, lambda write: on_data(settings, lambda rt: run(rt, write)))
        typer.echo(f"Wrote {count:,} {'link' if count == 1 else 'links'} to {output}.", err=True)


Work = Callable[[Callable[[str], object]], int]


def to_standard_output(work: Work) -> None:
    """UTF-8, whatever the terminal says; whoever reads may stop reading."""
    sink = sys.stdout.buffer
    try:
        work(lambda text: sink.write(text.encode()))
        sink.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end


def to_file(path: Path, work: Work) -> int:
    """The file appears when it is complete, readable by its owner alone."""
    try:
        with NamedTemporaryFile("w", encoding="utf-8", newline="", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                count = work(file.write)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(file.name)  # noqa: PTH108 - a name, not a path of ours
                raise
        Path(file.name).replace(path)
    except OSError as wrong:
        raise CannotWrite(path=path, why=wrong.strerror or str(wrong)) from wrong
    return count
