"""Looking at items."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from refract.cli.common import get_acting_user, load_command_settings, run_on_data
from refract.cli.library.output import (
    ItemArgument,
    parse_item_id,
    print_item,
    print_items,
    print_queue,
)
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json
from refract.core.db.session import ReadSession
from refract.core.pagination import MAX_LIMIT, CursorCodec, Page
from refract.core.runtime import Runtime
from refract.library.models import Item, ItemStatus, ItemType
from refract.library.queries.browse import LibraryFilter, LibraryItemPage, list_items
from refract.library.queries.items import get_own_item, list_pending_items
from refract.library.queries.serializers import serialize_item, serialize_items
from refract.library.schemas import ItemOut, ItemPage

TagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Only items with this tag; may be given several times."),
]
TypeOption = Annotated[
    ItemType | None,
    typer.Option("--type", help="Only notes, or only articles.", case_sensitive=False),
]
StateOption = Annotated[
    ItemStatus,
    typer.Option(
        "--state", help="In this state; discarded ones are kept too.", case_sensitive=False
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]
PageLoader = Callable[[ReadSession, CursorCodec, int, int, str | None], Awaitable[Page[Item]]]
"""One page: of somebody, so many, from a cursor on."""


def list_library(
    *,
    tag: TagsOption = None,
    kind: TypeOption = None,
    state: StateOption = ItemStatus.ARCHIVED,
    untagged: Annotated[
        bool, typer.Option("--untagged", help="Only items without any tag.")
    ] = False,
    limit: LimitOption = 50,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List what is in the library, the newest confirmed first."""

    async def turn(
        session: ReadSession, cursors: CursorCodec, user_id: int, most: int, cursor: str | None
    ) -> Page[Item]:
        shelf = LibraryFilter(user_id, state, kind, tuple(tag or ()), untagged)
        return await list_items(session, cursors, shelf, limit=most, cursor=cursor)

    page, _ = _load_pages(turn, limit, user, data_dir)
    if as_json:
        print_json(page)
    elif page.items:
        print_items(page.items)
        _print_more_hint(page, limit)
    elif tag or kind or untagged or state is not ItemStatus.ARCHIVED:
        typer.echo("No items found.")
    else:
        typer.echo(
            "Nothing is in the library yet. Save something with: refract save TEXT; refract library"
            " review shows what waits."
        )


def search(
    words: Annotated[
        list[str],
        typer.Argument(
            help=(
                "Words by their beginning, or #tag. Behind -- also -word and -#tag, which must not"
                " occur."
            ),
            metavar="WORDS...",
        ),
    ],
    *,
    tag: TagsOption = None,
    kind: TypeOption = None,
    state: StateOption = ItemStatus.ARCHIVED,
    limit: LimitOption = 20,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Find items by words of their title, summary, text, saved page or tags. All words must occur."""
    typed = " ".join(words)

    async def turn(
        session: ReadSession, cursors: CursorCodec, user_id: int, most: int, cursor: str | None
    ) -> Page[Item]:
        shelf = LibraryFilter(user_id, state, kind, tuple(tag or ()), q=typed)
        return await list_items(session, cursors, shelf, limit=most, cursor=cursor)

    page, approximate = _load_pages(turn, limit, user, data_dir)
    if as_json:
        print_json(page)
    elif page.items:
        if approximate:
            typer.echo("Nothing has these words; these are near to them.", err=True)
        print_items(page.items)
        _print_more_hint(page, limit)
    else:
        typer.echo("No items found.")


def review(
    limit: LimitOption = 50, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """List what waits for a decision or for the assistant, the newest first, with the tags that are proposed."""

    async def turn(
        session: ReadSession, cursors: CursorCodec, user_id: int, most: int, cursor: str | None
    ) -> Page[Item]:
        return await list_pending_items(
            session, cursors, user_id, status=None, limit=most, cursor=cursor
        )

    page, _ = _load_pages(turn, limit, user, data_dir)
    if as_json:
        print_json(page)
    elif page.items:
        print_queue(page.items)
        _print_more_hint(page, limit)
    else:
        typer.echo("Nothing waits for review.")


def show(
    which: ItemArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Show everything about an item."""
    number = parse_item_id(which)

    async def run(rt: Runtime) -> ItemOut:
        person = await get_acting_user(rt, user)
        async with rt.db.read() as session:
            return await serialize_item(session, await get_own_item(session, person.id, number))

    item = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json(item)
    else:
        print_item(item)


def _load_pages(
    turn: PageLoader, limit: int, user: str | None, data_dir: Path | None
) -> tuple[ItemPage, bool]:
    """As many as asked for, page by page; and whether they are only near to what was sought."""

    async def run(rt: Runtime) -> tuple[ItemPage, bool]:
        person, cursors = await get_acting_user(rt, user), CursorCodec(rt.secret)
        items, cursor, near = list[ItemOut](), None, False
        while True:
            async with rt.db.read() as session:
                page = await turn(
                    session, cursors, person.id, min(MAX_LIMIT, limit - len(items)), cursor
                )
                items += await serialize_items(session, page.items)
            near = near or (isinstance(page, LibraryItemPage) and page.approximate)
            cursor = page.next_cursor
            if cursor is None or len(items) >= limit:
                return ItemPage(items=items, next_cursor=cursor), near

    return run_on_data(load_command_settings(data_dir), run)


def _print_more_hint(page: ItemPage, limit: int) -> None:
    if page.next_cursor:
        typer.echo(f"There are more: show them with --limit {limit * 10}, or search.", err=True)
