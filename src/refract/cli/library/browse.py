"""`refract library`: list, search, review, show."""

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
from refract.library.queries.browse import (
    ArchivedFilter,
    LibraryFilter,
    LibraryItemPage,
    list_items,
)
from refract.library.queries.items import get_own_item, list_pending_items
from refract.library.queries.serializers import serialize_item, serialize_items
from refract.library.schemas import ItemOut, ItemPage

TagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Only items with this tag. Repeat for several."),
]
TypeOption = Annotated[
    ItemType | None,
    typer.Option("--type", help="Only notes, or only articles.", case_sensitive=False),
]
StateOption = Annotated[
    ItemStatus,
    typer.Option("--state", help="Only items in this state.", case_sensitive=False),
]
UnreadOption = Annotated[
    bool | None, typer.Option("--unread/--read", help="Only unread items, or only read ones.")
]
FavoriteOption = Annotated[
    bool | None,
    typer.Option("--favorite/--no-favorite", help="Only favorites, or only other items."),
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="Maximum number of items.")]
PageLoader = Callable[[ReadSession, CursorCodec, int, int, str | None], Awaitable[Page[Item]]]
"""Loads a page of a user's items: session, cursors, user id, size, cursor."""


def list_library(
    *,
    tag: TagsOption = None,
    kind: TypeOption = None,
    state: StateOption = ItemStatus.ARCHIVED,
    untagged: Annotated[bool, typer.Option("--untagged", help="Only items without tags.")] = False,
    unread: UnreadOption = None,
    favorite: FavoriteOption = None,
    archived: Annotated[
        ArchivedFilter,
        typer.Option("--archived", help="false leaves out archived items, true lists only them."),
    ] = ArchivedFilter.EXCLUDED,
    limit: LimitOption = 50,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List items in the library, most recently saved first."""

    async def load_page(
        session: ReadSession, cursors: CursorCodec, user_id: int, size: int, cursor: str | None
    ) -> Page[Item]:
        filters = LibraryFilter(
            user_id,
            state,
            kind,
            tuple(tag or ()),
            untagged,
            unread=unread,
            favorite=favorite,
            archived=archived if state is ItemStatus.ARCHIVED else None,
        )
        return await list_items(session, cursors, filters, limit=size, cursor=cursor)

    page, _ = _load_pages(load_page, limit, user, data_dir)
    if as_json:
        print_json(page)
    elif page.items:
        print_items(page.items)
        _print_more_hint(page, limit)
    elif (
        tag
        or kind
        or untagged
        or state is not ItemStatus.ARCHIVED
        or (unread, favorite, archived) != (None, None, ArchivedFilter.EXCLUDED)
    ):
        typer.echo("No items found.")
    else:
        typer.echo(
            "Nothing here yet. Add something with: refract save TEXT. List items to review with:"
            " refract library review"
        )


def search(
    words: Annotated[
        list[str],
        typer.Argument(
            help=(
                "Beginnings of words, #tag, or is:unread, is:read, is:favorite, is:archived."
                " After --, exclude with -word, -#tag and -is:unread."
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
    """Search titles, summaries, notes, texts, saved pages and tags. All words must match."""
    typed = " ".join(words)

    async def load_page(
        session: ReadSession, cursors: CursorCodec, user_id: int, size: int, cursor: str | None
    ) -> Page[Item]:
        filters = LibraryFilter(user_id, state, kind, tuple(tag or ()), q=typed)
        return await list_items(session, cursors, filters, limit=size, cursor=cursor)

    page, approximate = _load_pages(load_page, limit, user, data_dir)
    if as_json:
        print_json(page)
    elif page.items:
        if approximate:
            typer.echo("No exact matches. Showing similar results:", err=True)
        print_items(page.items)
        _print_more_hint(page, limit)
    else:
        typer.echo("No items found.")


def review(
    limit: LimitOption = 50, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """List items to review, newest first, with their suggested tags."""

    async def load_page(
        session: ReadSession, cursors: CursorCodec, user_id: int, size: int, cursor: str | None
    ) -> Page[Item]:
        return await list_pending_items(
            session, cursors, user_id, status=None, limit=size, cursor=cursor
        )

    page, _ = _load_pages(load_page, limit, user, data_dir)
    if as_json:
        print_json(page)
    elif page.items:
        print_queue(page.items)
        _print_more_hint(page, limit)
    else:
        typer.echo("Nothing to review.")


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
    load_page: PageLoader, limit: int, user: str | None, data_dir: Path | None
) -> tuple[ItemPage, bool]:
    """Return up to `limit` items, and whether they only match approximately."""

    async def run(rt: Runtime) -> tuple[ItemPage, bool]:
        person, cursors = await get_acting_user(rt, user), CursorCodec(rt.secret)
        items, cursor, approximate = list[ItemOut](), None, False
        while True:
            async with rt.db.read() as session:
                page = await load_page(
                    session, cursors, person.id, min(MAX_LIMIT, limit - len(items)), cursor
                )
                items += await serialize_items(session, page.items)
            approximate = approximate or (isinstance(page, LibraryItemPage) and page.approximate)
            cursor = page.next_cursor
            if cursor is None or len(items) >= limit:
                return ItemPage(items=items, next_cursor=cursor), approximate

    return run_on_data(load_command_settings(data_dir), run)


def _print_more_hint(page: ItemPage, limit: int) -> None:
    if page.next_cursor:
        typer.echo(f"There are more. Use --limit {limit * 10}, or search.", err=True)
