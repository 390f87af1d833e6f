"""Looking at items."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from refract.cli.common import acting, command_settings, on_data
from refract.cli.library.shown import Which, item_id, print_item, print_items, print_queue
from refract.cli.links.shown import print_json
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.db import ReadSession
from refract.core.page import MAX_LIMIT, Cursors, Page
from refract.core.runtime import Runtime
from refract.library.cards import card_of, cards_of
from refract.library.models import Item, ItemStatus, ItemType
from refract.library.queries import own_item, page_of_pending
from refract.library.schemas import ItemOut, ItemPage
from refract.library.shelf import Found, Shelf, page_of_items

Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only items with this tag; may be given several times.")]
Type = Annotated[ItemType | None, typer.Option("--type", help="Only notes, or only articles.", case_sensitive=False)]
State = Annotated[ItemStatus, typer.Option("--state", help="In this state; discarded ones are kept too.", case_sensitive=False)]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]
Turn = Callable[[ReadSession, Cursors, int, int, str | None], Awaitable[Page[Item]]]
"""One page: of somebody, so many, from a cursor on."""


def list_items(
    *,
    tag: Tags = None,
    kind: Type = None,
    state: State = ItemStatus.ARCHIVED,
    untagged: Annotated[bool, typer.Option("--untagged", help="Only items without any tag.")] = False,
    limit: Limit = 50,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List what is in the library, the newest confirmed first."""

    async def turn(session: ReadSession, cursors: Cursors, user_id: int, most: int, cursor: str | None) -> Page[Item]:
        shelf = Shelf(user_id, state, kind, tuple(tag or ()), untagged)
        return await page_of_items(session, cursors, shelf, limit=most, cursor=cursor)

    page, _ = _read(turn, limit, user, data_dir)
    if as_json:
        print_json(page)
    elif page.items:
        print_items(page.items)
        _tell_of_more(page, limit)
    elif tag or kind or untagged or state is not ItemStatus.ARCHIVED:
        typer.echo("No items found.")
    else:
        typer.echo("Nothing is in the library yet. Save something with: refract save TEXT; refract library review shows what waits.")


def search(
    words: Annotated[
        list[str],
        typer.Argument(help="Words by their beginning, or #tag. Behind -- also -word and -#tag, which must not occur.", metavar="WORDS..."),
    ],
    *,
    tag: Tags = None,
    kind: Type = None,
    state: State = ItemStatus.ARCHIVED,
    limit: Limit = 20,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Find items by words of their title, summary, text, saved page or tags. All words must occur."""
    typed = " ".join(words)

    async def turn(session: ReadSession, cursors: Cursors, user_id: int, most: int, cursor: str | None) -> Page[Item]:
        shelf = Shelf(user_id, state, kind, tuple(tag or ()), q=typed)
        return await page_of_items(session, cursors, shelf, limit=most, cursor=cursor)

    page, approximate = _read(turn, limit, user, data_dir)
    if as_json:
        print_json(page)
    elif page.items:
        if approximate:
            typer.echo("Nothing has these words; these are near to them.", err=True)
        print_items(page.items)
        _tell_of_more(page, limit)
    else:
        typer.echo("No items found.")


def review(limit: Limit = 50, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List what waits for a decision or for the assistant, the newest first, with the tags that are proposed."""

    async def turn(session: ReadSession, cursors: Cursors, user_id: int, most: int, cursor: str | None) -> Page[Item]:
        return await page_of_pending(session, cursors, user_id, status=None, limit=most, cursor=cursor)

    page, _ = _read(turn, limit, user, data_dir)
    if as_json:
        print_json(page)
    elif page.items:
        print_queue(page.items)
        _tell_of_more(page, limit)
    else:
        typer.echo("Nothing waits for review.")


def show(which: Which, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show everything about an item."""
    number = item_id(which)

    async def run(rt: Runtime) -> ItemOut:
        person = await acting(rt, user)
        async with rt.db.read() as session:
            return await card_of(session, await own_item(session, person.id, number))

    item = on_data(command_settings(data_dir), run)
    if as_json:
        print_json(item)
    else:
        print_item(item)


def _read(turn: Turn, limit: int, user: str | None, data_dir: Path | None) -> tuple[ItemPage, bool]:
    """As many as asked for, page by page; and whether they are only near to what was sought."""

    async def run(rt: Runtime) -> tuple[ItemPage, bool]:
        person, cursors = await acting(rt, user), Cursors(rt.secret)
        items, cursor, near = list[ItemOut](), None, False
        while True:
            async with rt.db.read() as session:
                page = await turn(session, cursors, person.id, min(MAX_LIMIT, limit - len(items)), cursor)
                items += await cards_of(session, page.items)
            near = near or (isinstance(page, Found) and page.approximate)
            cursor = page.next_cursor
            if cursor is None or len(items) >= limit:
                return ItemPage(items=items, next_cursor=cursor), near

    return on_data(command_settings(data_dir), run)


def _tell_of_more(page: ItemPage, limit: int) -> None:
    if page.next_cursor:
        typer.echo(f"There are more: show them with --limit {limit * 10}, or search.", err=True)
