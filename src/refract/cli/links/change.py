"""Changing what a link is."""

from typing import Annotated, Any

import typer

from refract.cli.common import BadValue, checked, command_settings, moment, on_data
from refract.cli.links.desk import Which, at_desk, tell
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.runtime import Runtime
from refract.links import service
from refract.links.models import Visibility
from refract.links.queries import version_of
from refract.links.safety import Safety
from refract.links.schemas import LinkOut, LinkPatch


def edit(
    which: Which,
    *,
    destination: Annotated[str | None, typer.Option("--destination", help="Where it leads from now on.", metavar="URL")] = None,
    title: Annotated[str | None, typer.Option("--title", help='"" removes it.')] = None,
    notes: Annotated[str | None, typer.Option("--notes", help='"" removes them.')] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help='May be given several times; replaces all tags. "" removes them.')] = None,
    expires: Annotated[str | None, typer.Option("--expires", help="30d, 2026-12-31, a moment, or never.", metavar="WHEN")] = None,
    status: Annotated[int | None, typer.Option("--status", help="301, 302, 307 or 308.")] = None,
    visibility: Annotated[Visibility | None, typer.Option("--visibility")] = None,
    forward_query: Annotated[
        bool | None, typer.Option("--forward-query/--no-forward-query", help="Pass the query of a request on.")
    ] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Change what is named, and nothing else."""
    settings = command_settings(data_dir)
    given: dict[str, Any] = {
        "destination": destination, "title": title, "notes": notes, "tags": None if tag is None else [one for one in tag if one],
        "redirect_status": status, "visibility": visibility, "forward_query": forward_query,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}

    tell(on_data(settings, lambda rt: _edited(rt, which, given, expires, user)), "Changed {link}.", as_json=as_json)


async def _edited(rt: Runtime, which: str, given: dict[str, Any], expires: str | None, user: str | None) -> LinkOut:
    if expires is not None:
        given["expires_at"] = None if expires == "never" else moment(expires, rt.clock.now())
    if not given:
        raise BadValue(problem="Say what to change: refract links edit --help lists it.")
    patch = checked(LinkPatch, **given)
    desk = await at_desk(rt, user)
    async with rt.db.read() as session:
        link = await desk.find(session, which)
    vetted = await rt.part(Safety).vet_one(given["destination"]) if "destination" in given else None
    async with rt.db.write() as writing:
        held = await service.edit_link(writing, desk.space, desk.who, link.id, patch, vetted)
        return await desk.out(writing, held.link)


def revert(
    which: Which,
    version: Annotated[int, typer.Argument(help="The version to go back to, as `refract links history` counts.")],
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Give a link what it had in an earlier version; names and owners stay."""

    async def run(rt: Runtime) -> LinkOut:
        desk = await at_desk(rt, user)
        async with rt.db.read() as session:
            link = await desk.find(session, which)
            kept = (await version_of(session, link.id, version)).snapshot
        vetted = await rt.part(Safety).vet_one(kept["destination"])
        async with rt.db.write() as writing:
            held = await service.revert_link(writing, desk.space, desk.who, link.id, version, vetted)
            return await desk.out(writing, held.link)

    tell(on_data(command_settings(data_dir), run), f"{{link}} is again what it was in version {version}.", as_json=as_json)
