"""`refract lists`: the lists of all users."""

from collections.abc import Iterable
from typing import Annotated

import typer

from refract.admin import queries
from refract.admin.schemas import AdminListOut
from refract.cli.common import get_acting_user, load_command_settings, run_on_data
from refract.cli.links.context import parse_segment
from refract.cli.options import AsJson, DataDir
from refract.cli.output import print_json_list
from refract.cli.tables import make_console, make_safe_text, make_table
from refract.core.errors import NotFound
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.text import make_excerpt
from refract.lists import service
from refract.lists.access import ListCaller
from refract.lists.models import LinkList
from refract.lists.queries import AllListsFilter, find_published_list, find_removed_list
from refract.names.service import namespace_of

app = typer.Typer(
    help="Find, transfer, take down and restore the lists of all users.", no_args_is_help=True
)
ListArgument = Annotated[
    str, typer.Argument(help="Name or short URL of a published list.", metavar="NAME")
]
_MAX_LISTS = 200


class UnknownList(NotFound):
    """There's no list "{typed}"."""


@app.command("list")
def list_lists(
    search: Annotated[
        str | None, typer.Argument(help="Words in titles, names or hosts. Default: all lists.")
    ] = None,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Only lists without an owner.")
    ] = False,
    removed: Annotated[
        bool, typer.Option("--removed", help="Only lists deleted in the last 24 hours.")
    ] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the lists of all users, newest first, at most 200."""

    async def run(rt: Runtime) -> list[AdminListOut]:
        since = rt.clock.now() - service.UNDO_WINDOW if removed else None
        filters = AllListsFilter(search, True if anonymous else None, None, since)
        async with rt.db.read() as session:
            page = await queries.load_admin_lists_page(
                session,
                CursorCodec(rt.secret),
                filters,
                rt.settings.public_url,
                limit=_MAX_LISTS,
                cursor=None,
            )
        return page.items

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json_list(found)
    elif found:
        _print_lists(found)
    else:
        typer.echo("No lists.")


def _print_lists(found: Iterable[AdminListOut]) -> None:
    table = make_table("name", "title", "status", "owner", "hosts", "created")
    for row in found:
        hosts = ", ".join(row.hosts[:3])
        team = row.team.name if row.team else None
        owner = row.owner_email or team or "(no account)"
        table.add_row(
            row.slug or "",
            make_safe_text(row.title or ""),
            row.status,
            make_safe_text(owner),
            make_safe_text(hosts),
            f"{row.created_at:%Y-%m-%d}",
        )
    make_console().print(table)


@app.command("transfer")
def transfer(
    name: ListArgument,
    team: Annotated[str, typer.Argument(help="Handle of the team.", metavar="TEAM")],
    data_dir: DataDir = None,
) -> None:
    """Make a team the owner of a published list and of its editions."""

    async def run(rt: Runtime) -> LinkList:
        by = await get_acting_user(rt, None)
        async with rt.db.write() as session:
            found = await find_published_list(session, parse_segment(name))
            if found is None:
                raise UnknownList(typed=make_excerpt(name))
            caller = ListCaller(by.id, is_admin=True)
            return await service.transfer_list(session, caller, found.id, team, rt.clock.now())

    moved = run_on_data(load_command_settings(data_dir), run)
    typer.echo(f"Transferred {moved.slug} to {team}.")


@app.command("remove")
def remove(name: ListArgument, data_dir: DataDir = None) -> None:
    """Take down a published list. Its owner can't restore it; you can, for 24 hours."""

    async def run(rt: Runtime) -> LinkList:
        by = await get_acting_user(rt, None)
        async with rt.db.write() as session:
            found = await find_published_list(session, parse_segment(name))
            if found is None:
                raise UnknownList(typed=make_excerpt(name))
            caller = ListCaller(by.id, is_admin=True)
            return await service.delete_list(session, rt.ids, caller, found.id, rt.clock.now())

    removed = run_on_data(load_command_settings(data_dir), run)
    typer.echo(f"Removed {removed.slug}. Restore it with: refract lists restore {removed.slug}")


@app.command("restore")
def restore(name: ListArgument, data_dir: DataDir = None) -> None:
    """Restore a list that was deleted in the last 24 hours, with its name."""

    async def run(rt: Runtime) -> LinkList:
        by = await get_acting_user(rt, None)
        space = namespace_of(rt)
        async with rt.db.write() as session:
            found = await find_removed_list(session, parse_segment(name))
            if found is None:
                raise UnknownList(typed=make_excerpt(name))
            return await service.undo_delete(
                session, space, ListCaller(by.id, is_admin=True), found.id
            )

    restored = run_on_data(load_command_settings(data_dir), run)
    typer.echo(f"Restored {restored.slug}.")
