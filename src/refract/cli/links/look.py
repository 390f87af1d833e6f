"""Looking at links."""

import json
from typing import Annotated, Any

import typer
from rich.table import Table

from refract.cli.common import command_settings, on_data
from refract.cli.links.desk import Desk, Which, at_desk, extra_of, segment_of
from refract.cli.links.shown import console, day, print_json, print_link, print_links, safe
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.errors import NotFound
from refract.core.page import MAX_LIMIT, Cursors
from refract.core.runtime import Runtime
from refract.core.schema import Output
from refract.identity.access import Right
from refract.identity.errors import AdministratorsOnly
from refract.identity.models import User
from refract.links.golinks import Unfillable, expand, split_extra
from refract.links.models import LinkChange, LinkState, Visibility
from refract.links.queries import LinkQuestion, OwnerFilter, Sort, cards_of, history_of, page_of_links, view_link
from refract.links.schemas import LinkOut
from refract.links.templates import read_template


class LinkPage(Output):
    """A page of links, as the API answers it."""

    items: list[LinkOut]
    next_cursor: str | None


class LeadsNowhere(NotFound):
    """{reason}"""


def list_links(
    search: Annotated[str | None, typer.Argument(help="Words in name, title, notes or destination.", metavar="[WORDS]")] = None,
    *,
    owner: Annotated[OwnerFilter, typer.Option("--owner", help="Whose links; all of them are for administrators.")] = OwnerFilter.ME,
    status: Annotated[LinkState | None, typer.Option("--status", help="Only these. Left out: all but deleted ones.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only links with this tag.")] = None,
    visibility: Annotated[Visibility | None, typer.Option("--visibility", help="Only links of this visibility.")] = None,
    sort: Annotated[Sort, typer.Option("--sort", help="Newest or most first.")] = Sort.CREATED,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Go on where an earlier answer ended (next_cursor in its JSON).")] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List links."""
    asked = LinkQuestion(owner=owner, status=status, tag=tag, q=search, sort=sort, visibility=visibility)

    async def run(rt: Runtime) -> LinkPage:
        desk = await at_desk(rt, user)
        if owner is OwnerFilter.ALL and not desk.who.is_admin:
            raise AdministratorsOnly
        return await _links(desk, asked, limit, cursor)

    page = on_data(command_settings(data_dir), run)
    if as_json:
        print_json(page)
    elif not page.items:
        typer.echo("No links found." if asked != LinkQuestion() else "No links yet. Make one with: refract shorten URL")
    else:
        print_links(page.items)
        if page.next_cursor:
            typer.echo(f"There are more: show them with --limit {limit * 10}, or search.", err=True)


async def _links(desk: Desk, asked: LinkQuestion, limit: int, cursor: str | None) -> LinkPage:
    rt, items = desk.rt, list[LinkOut]()
    cursors, now = Cursors(rt.secret), rt.clock.now()
    while len(items) < limit:
        async with rt.db.read() as session:
            some = min(MAX_LIMIT, limit - len(items))
            page = await page_of_links(session, cursors, desk.who, asked, now, limit=some, cursor=cursor)
            stats = asked.owner is not OwnerFilter.PUBLIC
            cards = await cards_of(session, page.items)
        items += [card.shown(rt.settings.public_url, now, stats=stats, managing=stats) for card in cards]
        cursor = page.next_cursor
        if cursor is None:
            break
    return LinkPage(items=items, next_cursor=cursor)


def show(which: Which, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show everything about a link."""

    async def run(rt: Runtime) -> LinkOut:
        desk = await at_desk(rt, user)
        async with rt.db.read() as session:
            return await desk.out(session, await desk.find(session, which))

    link = on_data(command_settings(data_dir), run)
    if as_json:
        print_json(link)
    else:
        print_link(link)


def resolve(
    path: Annotated[str, typer.Argument(help="Such as /jira/PROJ-1?view=all, or a whole short URL.")],
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Say where a path would lead, without going there or counting a click."""

    async def run(rt: Runtime) -> dict[str, Any]:
        desk = await at_desk(rt, user)
        async with rt.db.read() as session:
            link = await desk.find(session, path)
            out = await desk.out(session, link)
        extra, query = extra_of(path)
        target = expand(read_template(link.destination), split_extra(extra), query, forward_query=link.forward_query)
        if isinstance(target, Unfillable):
            raise LeadsNowhere(reason=target.reason)
        return {"path": path, "location": target, "redirect_status": out.redirect_status, "status": out.status, "link": str(out.id)}

    found = on_data(command_settings(data_dir), run)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(found["location"])
    if found["status"] != LinkState.ACTIVE:
        typer.secho(f"But the link {segment_of(path)} is {found['status']}, so nobody gets there now.", fg="yellow", err=True)


def history(
    which: Which,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many versions.")] = 50,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Show what was done to a link, newest first."""

    async def run(rt: Runtime) -> list[tuple[LinkChange, str]]:
        desk = await at_desk(rt, user)
        async with rt.db.read() as session:
            link = await desk.find(session, which)
            await view_link(session, desk.who, link.id, Right.EDIT)
            changes = await history_of(session, link.id, limit)
            people = {number: await session.get(User, number) for number in {one.actor_id for one in changes} if number is not None}
        named = {number: person.shown_name for number, person in people.items() if person is not None}
        return [(one, named.get(one.actor_id or 0, "–")) for one in changes]

    versions = on_data(command_settings(data_dir), run)
    if as_json:
        rows = [
            {"version": one.version, "at": one.at.isoformat(), "by": by, "action": one.action, "changes": one.changes}
            for one, by in versions
        ]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("version", "when", "who", "what", "changes"):
        table.add_column(heading, overflow="fold")
    for one, by in versions:
        table.add_row(str(one.version), day(one.at), safe(by), one.action.replace("_", " "), safe(_told(one.changes), 500))
    console().print(table)


def _told(changes: dict[str, Any]) -> str:
    told = []
    for name, change in changes.items():
        if isinstance(change, dict) and set(change) == {"from", "to"}:
            told.append(f"{name}: {_word(change['from'])} → {_word(change['to'])}")
        else:
            told.append(f"{name}: {json.dumps(change, ensure_ascii=False)}")
    return "; ".join(told)


def _word(value: Any) -> str:
    return "–" if value in (None, "", []) else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
