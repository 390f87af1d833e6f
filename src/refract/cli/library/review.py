"""`refract library`: confirm, mark, discard, retry, undo."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from refract.cli.common import (
    InvalidValue,
    get_acting_user,
    load_command_settings,
    run_on_data,
    validate_options,
)
from refract.cli.library.output import ItemArgument, parse_item_id
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json
from refract.core.runtime import Runtime
from refract.core.text import make_excerpt
from refract.library import service
from refract.library.models import SuggestionStatus
from refract.library.queries.serializers import serialize_item
from refract.library.schemas import ItemConfirmation, ItemOut, ItemPatch
from refract.library.service import LockedItem
from refract.tags.grammar import personal_key

ItemAction = Callable[[LockedItem], Awaitable[LockedItem]]


def confirm(
    which: ItemArgument,
    *,
    title: Annotated[
        str | None, typer.Option("--title", help="Title instead of the suggested one.")
    ] = None,
    summary: Annotated[
        str | None, typer.Option("--summary", help="Summary instead of the suggested one.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", help="Suggested tag to accept. Repeat for several."),
    ] = None,
    accept_all: Annotated[
        bool, typer.Option("--accept-all", help="Accept every suggested tag.")
    ] = False,
    reject: Annotated[
        list[str] | None, typer.Option("--reject", help="Suggested tag to reject.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="Another tag. Repeat for several."),
    ] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Save an item to the library with the accepted suggestions."""

    async def act(locked: LockedItem) -> LockedItem:
        accepted = _find_suggestion_ids(locked, accept or [])
        rejected = _find_suggestion_ids(locked, reject or [])
        if accept_all:
            accepted = [
                tag.id
                for tag in locked.suggestions
                if tag.status == SuggestionStatus.PENDING and tag.id not in rejected
            ]
        decision = {
            "title": title,
            "summary": summary,
            "accept": accepted,
            "reject": rejected,
            "new_tags": tag or [],
        }
        return await service.confirm_item(
            locked,
            validate_options(
                ItemConfirmation,
                **{name: value for name, value in decision.items() if value is not None},
            ),
        )

    _change_item(which, act, "Saved {item}.", user=user, as_json=as_json, data_dir=data_dir)


def mark(
    which: ItemArgument,
    *,
    unread: Annotated[
        bool | None, typer.Option("--unread/--read", help="To be read later, or read.")
    ] = None,
    favorite: Annotated[
        bool | None,
        typer.Option("--favorite/--no-favorite", help="Add to favorites, or remove from them."),
    ] = None,
    archived: Annotated[
        bool | None,
        typer.Option("--archive/--unarchive", help="Move to the archive, or to the library."),
    ] = None,
    notes: Annotated[
        str | None, typer.Option("--notes", help="Your own words; an empty text clears them.")
    ] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Mark an item as unread, favorite or archived, or write notes about it."""
    given = {"unread": unread, "favorite": favorite, "archived": archived, "notes": notes}
    named = {name: value for name, value in given.items() if value is not None}
    if not named:
        problem = "Choose what to change: --read, --favorite, --archive or --notes, for example."
        raise InvalidValue(problem=problem)
    changes = validate_options(ItemPatch, **named)

    async def act(locked: LockedItem) -> LockedItem:
        return await service.edit_item(locked, changes)

    _change_item(which, act, "Changed {item}.", user=user, as_json=as_json, data_dir=data_dir)


def discard(
    which: ItemArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Discard an item. You can undo this for 24 hours."""
    _change_item(
        which,
        service.discard_item,
        "Discarded {item}.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def retry(
    which: ItemArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Retry a failed item. Without a running server, it waits until one starts."""
    _change_item(
        which,
        service.retry_item,
        "Retrying {item}.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def undo(
    which: ItemArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Undo the latest change of an item, within 24 hours. Undoing a capture discards it."""
    _change_item(
        which,
        service.undo_item,
        "Undone: {item}.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def _change_item(
    which: str,
    act: ItemAction,
    message: str,
    *,
    user: str | None,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    number = parse_item_id(which)

    async def run(rt: Runtime) -> ItemOut:
        person = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            locked = await act(await service.lock_item(session, rt, person.id, number))
            return await serialize_item(session, locked.item)

    item = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json(item)
    else:
        typer.echo(message.format(item=f"“{make_excerpt(item.title or item.text, 80)}”"))


def _find_suggestion_ids(locked: LockedItem, names: list[str]) -> list[int]:
    """Return the ids of the suggestions with these names."""
    known = {tag.normalised_name: tag.id for tag in locked.suggestions}
    for name in names:
        if personal_key(name) not in known:
            suggested = ", ".join(tag.name for tag in locked.suggestions) or "none"
            raise InvalidValue(
                problem=(
                    f'"{make_excerpt(name, 80)}" is not a suggested tag of this item. Suggested:'
                    f" {make_excerpt(suggested, 300)}."
                )
            )
    return [known[personal_key(name)] for name in dict.fromkeys(names)]
