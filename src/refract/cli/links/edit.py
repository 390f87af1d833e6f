"""Changing what a link is."""

from typing import Annotated, Any

import typer

from refract.cli.common import (
    InvalidValue,
    load_command_settings,
    parse_time,
    run_on_data,
    validate_options,
)
from refract.cli.links.context import (
    LinkArgument,
    LinkCommandContext,
    change_link,
    load_context,
    print_change,
)
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.users import fold_email
from refract.links import service
from refract.links.errors import OwnerNotFound
from refract.links.models import Visibility
from refract.links.queries import get_version, list_owners
from refract.links.safety.service import DestinationChecker
from refract.links.schemas import LinkOut, LinkPatch
from refract.links.service import LockedLink


def edit(
    which: LinkArgument,
    *,
    destination: Annotated[
        str | None, typer.Option("--destination", help="Where it leads from now on.", metavar="URL")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help='"" removes it.')] = None,
    notes: Annotated[str | None, typer.Option("--notes", help='"" removes them.')] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            "--tag", help='May be given several times; replaces all tags. "" removes them.'
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", help="30d, 2026-12-31, a moment, or never.", metavar="WHEN"),
    ] = None,
    status: Annotated[int | None, typer.Option("--status", help="301, 302, 307 or 308.")] = None,
    visibility: Annotated[Visibility | None, typer.Option("--visibility")] = None,
    forward_query: Annotated[
        bool | None,
        typer.Option("--forward-query/--no-forward-query", help="Pass the query of a request on."),
    ] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Change what is named, and nothing else."""
    settings = load_command_settings(data_dir)
    given: dict[str, Any] = {
        "destination": destination, "title": title, "notes": notes, "tags": None if tag is None else [one for one in tag if one],
        "redirect_status": status, "visibility": visibility, "forward_query": forward_query,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}

    print_change(
        run_on_data(settings, lambda rt: _edit_link(rt, which, given, expires, user)),
        "Changed {link}.",
        as_json=as_json,
    )


async def _edit_link(
    rt: Runtime, which: str, given: dict[str, Any], expires: str | None, user: str | None
) -> LinkOut:
    if expires is not None:
        given["expires_at"] = None if expires == "never" else parse_time(expires, rt.clock.now())
    if not given:
        raise InvalidValue(problem="Say what to change: refract links edit --help lists it.")
    patch = validate_options(LinkPatch, **given)
    desk = await load_context(rt, user)
    async with rt.db.read() as session:
        link = await desk.find_link(session, which)
    vetted = (
        await rt.singleton(DestinationChecker).check_one(given["destination"])
        if "destination" in given
        else None
    )
    async with rt.db.write() as writing:
        held = await service.edit_link(writing, desk.namespace, desk.caller, link.id, patch, vetted)
        return await desk.to_schema(writing, held.link)


def revert(
    which: LinkArgument,
    version: Annotated[
        int, typer.Argument(help="The version to go back to, as `refract links history` counts.")
    ],
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Give a link what it had in an earlier version; names and owners stay."""

    async def run(rt: Runtime) -> LinkOut:
        desk = await load_context(rt, user)
        async with rt.db.read() as session:
            link = await desk.find_link(session, which)
            kept = (await get_version(session, link.id, version)).snapshot
        vetted = await rt.singleton(DestinationChecker).check_one(kept["destination"])
        async with rt.db.write() as writing:
            held = await service.revert_link(
                writing, desk.namespace, desk.caller, link.id, version, vetted
            )
            return await desk.to_schema(writing, held.link)

    print_change(
        run_on_data(load_command_settings(data_dir), run),
        f"{{link}} is again what it was in version {version}.",
        as_json=as_json,
    )


# `refract links names`.

names_app = typer.Typer(help="Names of a link: add one, or give one back.", no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(help="1 to 50 letters, digits, - and _.")]


@names_app.command("add")
def add_name(
    which: LinkArgument,
    name: NameArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Give a link one more name."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.add_name(session, desk.namespace, desk.caller, link_id, name)

    change_link(
        which,
        act,
        f"{{link}} is now called {_escape_braces(name)}, too.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


@names_app.command("release")
def release_name(
    which: LinkArgument,
    name: NameArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Give a name back, so that anybody may take it."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.release_name(session, desk.namespace, desk.caller, link_id, name)

    change_link(
        which,
        act,
        f"The name {_escape_braces(name)} is free.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def _escape_braces(name: str) -> str:
    return name.replace("{", "{{").replace("}", "}}")


# `refract links owners`.

owners_app = typer.Typer(help="Owners of a link: add, remove, transfer.", no_args_is_help=True)
OwnerEmailArgument = Annotated[str, typer.Argument(help="Whose account it is.", metavar="EMAIL")]


@owners_app.command("add")
def add_owner(
    which: LinkArgument,
    email: OwnerEmailArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Let somebody else own a link too, at once: what the operator does needs nobody's acceptance."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.add_owner(session, desk.caller, link_id, email, desk.rt.clock.now())

    change_link(
        which, act, "{link} has one owner more.", user=user, as_json=as_json, data_dir=data_dir
    )


@owners_app.command("remove")
def remove_owner(
    which: LinkArgument,
    email: OwnerEmailArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Take a link from a co-owner."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        owners = await list_owners(session, link_id)
        found = next(
            (owner.user_id for owner, person in owners if person.email_folded == fold_email(email)),
            None,
        )
        if found is None:
            raise OwnerNotFound
        return await service.remove_owner(session, desk.caller, link_id, found, desk.rt.clock.now())

    change_link(
        which, act, "{link} has one owner less.", user=user, as_json=as_json, data_dir=data_dir
    )


@owners_app.command("transfer")
def transfer_ownership(
    which: LinkArgument,
    email: OwnerEmailArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Make somebody else the primary owner, at once; who was it before stays a co-owner."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.transfer_link(
            session, desk.caller, link_id, email, desk.rt.clock.now()
        )

    change_link(
        which, act, "{link} has a new primary owner.", user=user, as_json=as_json, data_dir=data_dir
    )
