"""`refract links`: list, show, resolve, history."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.table import Table

from refract.cli.common import load_command_settings, run_on_data
from refract.cli.links.context import (
    LinkArgument,
    LinkCommandContext,
    load_context,
    parse_extra,
    parse_segment,
)
from refract.cli.links.output import print_link, print_links
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json
from refract.cli.tables import format_time, make_console, make_safe_text
from refract.core.errors import NotFound
from refract.core.pagination import MAX_LIMIT, CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import OutputSchema
from refract.domains.hosts import show_host
from refract.identity.access import AccessRight
from refract.identity.errors import AdminRequired
from refract.identity.models import User
from refract.links.enums import LinkState, Visibility
from refract.links.golinks.expansion import ExpansionFailure, expand_template, split_extra_path
from refract.links.golinks.template import parse_template
from refract.links.models import LinkChange
from refract.links.queries import (
    LinkFilter,
    LinkSort,
    OwnerFilter,
    list_versions,
    load_cards,
    load_links_page,
    view_link,
)
from refract.links.schemas import LinkOut


class LinkListing(OutputSchema):
    """A page of links, as the API answers it."""

    items: list[LinkOut]
    next_cursor: str | None


class LinkUnresolved(NotFound):
    """{reason}"""


def list_links(
    search: Annotated[
        str | None,
        typer.Argument(help="Words in names, titles, notes or destinations.", metavar="[WORDS]"),
    ] = None,
    *,
    owner: Annotated[
        OwnerFilter,
        typer.Option("--owner", help="Whose links. All links are for administrators only."),
    ] = OwnerFilter.ME,
    status: Annotated[
        LinkState | None,
        typer.Option("--status", help="Only this status. Default: all but deleted."),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="Only links with this tag. Repeat for several."),
    ] = None,
    visibility: Annotated[
        Visibility | None, typer.Option("--visibility", help="Only links with this visibility.")
    ] = None,
    team: Annotated[
        str | None,
        typer.Option("--team", help="Only links of the team with this handle.", metavar="TEAM"),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option("--domain", help="Only links on the domain with this host.", metavar="HOST"),
    ] = None,
    sort: Annotated[
        LinkSort, typer.Option("--sort", help="Sort order, newest or highest first.")
    ] = LinkSort.CREATED,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of links.")] = 50,
    cursor: Annotated[
        str | None,
        typer.Option("--cursor", help="Continue after an earlier page (next_cursor in its JSON)."),
    ] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List links."""
    filters = LinkFilter(
        owner=owner,
        status=status,
        tags=tuple(tag or ()),
        q=search,
        sort=sort,
        visibility=visibility,
        team=team,
    )

    async def run(rt: Runtime) -> LinkListing:
        context = await load_context(rt, user)
        if owner is OwnerFilter.ALL and not context.caller.is_admin:
            raise AdminRequired
        there = filters.on_domain(rt.settings.public_url, domain)
        return await _load_links(context, there, limit, cursor)

    settings = load_command_settings(data_dir)
    page = run_on_data(settings, run, makes_ids=False)
    if as_json:
        print_json(page)
    elif not page.items:
        typer.echo(
            "No links found."
            if domain or filters != LinkFilter()
            else "No links yet. Create one with: refract shorten URL"
        )
    else:
        print_links(page.items, show_host(settings.public_url, None))
        if page.next_cursor:
            typer.echo(f"There are more. Use --limit {limit * 10}, or search.", err=True)


async def _load_links(
    context: LinkCommandContext, filters: LinkFilter, limit: int, cursor: str | None
) -> LinkListing:
    rt, items = context.rt, list[LinkOut]()
    cursors, now = CursorCodec(rt.secret), rt.clock.now()
    while len(items) < limit:
        async with rt.db.read() as session:
            size = min(MAX_LIMIT, limit - len(items))
            page = await load_links_page(
                session, cursors, context.caller, filters, now, limit=size, cursor=cursor
            )
            stats = filters.owner is not OwnerFilter.PUBLIC
            cards = await load_cards(session, page.items)
        items += [
            card.to_schema(rt.settings.public_url, now, stats=stats, managing=stats)
            for card in cards
        ]
        cursor = page.next_cursor
        if cursor is None:
            break
    return LinkListing(items=items, next_cursor=cursor)


def show(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Show everything about a link."""

    async def run(rt: Runtime) -> LinkOut:
        context = await load_context(rt, user)
        async with rt.db.read() as session:
            return await context.to_schema(session, await context.find_link(session, which))

    link = run_on_data(load_command_settings(data_dir), run, makes_ids=False)
    if as_json:
        print_json(link)
    else:
        print_link(link)


def resolve(
    path: Annotated[
        str, typer.Argument(help="A path such as /jira/PROJ-1?view=all, or a short URL.")
    ],
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Print where a path redirects to, without counting a click."""

    async def run(rt: Runtime) -> dict[str, Any]:
        context = await load_context(rt, user)
        async with rt.db.read() as session:
            link = await context.find_link(session, path)
            out = await context.to_schema(session, link)
        extra, query = parse_extra(path)
        target = expand_template(
            parse_template(link.destination),
            split_extra_path(extra),
            query,
            forward_query=link.forward_query,
        )
        if isinstance(target, ExpansionFailure):
            raise LinkUnresolved(reason=target.reason)
        return {
            "path": path,
            "location": target,
            "redirect_status": out.redirect_status,
            "status": out.status,
            "link": str(out.id),
        }

    found = run_on_data(load_command_settings(data_dir), run, makes_ids=False)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(found["location"])
    if found["status"] != LinkState.ACTIVE:
        typer.secho(
            f"The link {parse_segment(path)} is {found['status']} and doesn't redirect now.",
            fg="yellow",
            err=True,
        )


def history(
    which: LinkArgument,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=1000, help="Maximum number of versions.")
    ] = 50,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show the version history of a link, newest first."""

    async def run(rt: Runtime) -> list[tuple[LinkChange, str]]:
        context = await load_context(rt, user)
        async with rt.db.read() as session:
            link = await context.find_link(session, which)
            await view_link(session, context.caller, link.id, AccessRight.EDIT)
            changes = await list_versions(session, link.id, limit)
            people = {
                number: await session.get(User, number)
                for number in {change.actor_id for change in changes}
                if number is not None
            }
        named = {
            number: person.public_name for number, person in people.items() if person is not None
        }
        return [(change, named.get(change.actor_id or 0, "–")) for change in changes]

    versions = run_on_data(load_command_settings(data_dir), run, makes_ids=False)
    if as_json:
        rows = [
            {
                "version": change.version,
                "at": change.at.isoformat(),
                "by": by,
                "action": change.action,
                "changes": change.changes,
            }
            for change, by in versions
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _print_history(versions)


def _print_history(versions: Iterable[tuple[LinkChange, str]]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("version", "when", "who", "what", "changes"):
        table.add_column(heading, overflow="fold")
    for change, by in versions:
        table.add_row(
            str(change.version),
            format_time(change.at),
            make_safe_text(by),
            change.action.replace("_", " "),
            make_safe_text(_format_changes(change.changes), 500),
        )
    make_console().print(table)


def _format_changes(changes: dict[str, Any]) -> str:
    parts = []
    for name, change in changes.items():
        if isinstance(change, dict) and set(change) == {"from", "to"}:
            parts.append(f"{name}: {_format_value(change['from'])} → {_format_value(change['to'])}")
        else:
            parts.append(f"{name}: {json.dumps(change, ensure_ascii=False)}")
    return "; ".join(parts)


def _format_value(value: Any) -> str:
    return (
        "–"
        if value in (None, "", [])
        else ", ".join(map(str, value))
        if isinstance(value, list)
        else str(value)
    )
