"""`refract import list` and `refract import rollback`."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer
from rich.table import Table
from sqlalchemy import select

from refract.cli.common import InvalidValue, get_acting_user, load_command_settings, run_on_data
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json_list
from refract.cli.tables import format_time, make_console, make_safe_text
from refract.core.runtime import Runtime
from refract.core.schemas import parse_id
from refract.core.text import count_noun, make_excerpt
from refract.imports.models import ImportRun, ImportSubject
from refract.imports.schemas import ImportProgress
from refract.imports.service import get_own_import, mark_rolling_back
from refract.library.imports import rollback as library_rollback
from refract.library.imports.schemas import ImportOut
from refract.links.imports import rollback as link_rollback
from refract.links.imports.schemas import LinkImportOut

_COUNTED = ("imported", "duplicate", "skipped")
_SCHEMAS: dict[str, type[ImportProgress]] = {
    ImportSubject.LIBRARY: ImportOut,
    ImportSubject.LINKS: LinkImportOut,
}
_ROLLBACKS: dict[str, tuple[str, Callable[[Runtime, int], Awaitable[bool]]]] = {
    ImportSubject.LIBRARY: ("item", library_rollback.roll_back_batch),
    ImportSubject.LINKS: ("link", link_rollback.roll_back_batch),
}


def list_imports(
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=1000, help="Maximum number of imports.")
    ] = 20,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List imports of links and bookmarks, newest first, with their ids."""

    async def run(rt: Runtime) -> list[ImportRun]:
        owner = await get_acting_user(rt, user)
        async with rt.db.read() as session:
            mine = (
                select(ImportRun)
                .where(ImportRun.user_id == owner.id)
                .order_by(ImportRun.id.desc())
                .limit(limit)
            )
            return list(await session.scalars(mine))

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json_list(_SCHEMAS[row.subject].from_import(row) for row in found)
        return
    if not found:
        typer.echo(
            "No imports yet. Start with: refract import links FILE | refract import library FILE"
        )
        return
    make_console().print(_build_table(found))


def _build_table(found: list[ImportRun]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("id", "of", "file", "started", "status", "rows", *_COUNTED):
        table.add_column(
            heading,
            no_wrap=True,
            min_width=len(str(1 << 62)) if heading == "id" else None,
            justify=("right" if heading in ("rows", *_COUNTED) else "left"),
        )
    for row in found:
        state = "dry run" if row.dry_run else row.status.lower().replace("_", " ")
        left_out = row.skipped + row.refused
        counts = (f"{number:,}" for number in (row.total, row.created, row.existing, left_out))
        name = make_safe_text(row.name, 60)
        table.add_row(str(row.id), row.subject, name, format_time(row.created_at), state, *counts)
    return table


def roll_back(
    import_id: Annotated[
        str, typer.Argument(help="Id, as listed by `refract import list`.", metavar="ID")
    ],
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Undo an import.

    Of the library, remove its items, and tags used only by them. Of links, remove those that were
    not changed since.
    """
    try:
        number = parse_id(import_id)
    except ValueError as exc:
        raise InvalidValue(
            problem=(
                f'"{make_excerpt(import_id, 80)}" is not the id of an import. List them with:'
                " refract import list"
            )
        ) from exc

    async def run(rt: Runtime) -> ImportRun:
        owner = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            found = await get_own_import(session, owner.id, None, number)
            await mark_rolling_back(session, found, rt.clock.now())
        _, roll_back_batch = _ROLLBACKS[found.subject]
        while await roll_back_batch(rt, number):
            pass
        async with rt.db.read() as session:
            return await get_own_import(session, owner.id, None, number)

    done = run_on_data(load_command_settings(data_dir), run)
    noun, _ = _ROLLBACKS[done.subject]
    kept = f" Kept {count_noun(done.kept, noun)} changed since." if done.kept else ""
    typer.echo(f"Undone: removed {count_noun(done.created - done.kept, noun)}.{kept}")
