"""Deciding about items: what the review deck does, by command."""

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
from refract.library.schemas import ItemConfirmation, ItemOut
from refract.library.service import LockedItem
from refract.tags.grammar import personal_key

ItemAction = Callable[[LockedItem], Awaitable[LockedItem]]


def confirm(
    which: ItemArgument,
    *,
    title: Annotated[
        str | None, typer.Option("--title", help="Another title than the proposed one.")
    ] = None,
    summary: Annotated[
        str | None, typer.Option("--summary", help="Another summary than the proposed one.")
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", help="A proposed tag to take; may be given several times."),
    ] = None,
    accept_all: Annotated[
        bool, typer.Option("--accept-all", help="Take every proposed tag.")
    ] = False,
    reject: Annotated[
        list[str] | None, typer.Option("--reject", help="A proposed tag never to see again.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="A tag of your own; may be given several times."),
    ] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Put an item into the library, with what is kept of the proposal."""

    async def act(held: LockedItem) -> LockedItem:
        taken = _find_suggestion_ids(held, accept or [])
        refused = _find_suggestion_ids(held, reject or [])
        if accept_all:
            taken = [
                one.id
                for one in held.suggestions
                if one.status == SuggestionStatus.PENDING and one.id not in refused
            ]
        kept = {
            "title": title,
            "summary": summary,
            "accept": taken,
            "reject": refused,
            "new_tags": tag or [],
        }
        return await service.confirm_item(
            held,
            validate_options(
                ItemConfirmation,
                **{name: value for name, value in kept.items() if value is not None},
            ),
        )

    _change_item(which, act, "Filed {item}.", user=user, as_json=as_json, data_dir=data_dir)


def discard(
    which: ItemArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Put an item away. It is kept, and `undo` brings it back within 24 hours."""
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
    """Let the assistant try a failed item once more. A running server does so; without one it waits for the next start."""
    _change_item(
        which,
        service.retry_item,
        "Trying again: {item}.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def undo(
    which: ItemArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Take back the latest change of an item, within 24 hours. Undoing a capture discards it."""
    _change_item(
        which,
        service.undo_item,
        "{item} is as it was.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def _change_item(
    which: str,
    act: ItemAction,
    said: str,
    *,
    user: str | None,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    number = parse_item_id(which)

    async def run(rt: Runtime) -> ItemOut:
        person = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            held = await act(await service.lock_item(session, rt, person.id, number))
            return await serialize_item(session, held.item)

    item = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json(item)
    else:
        typer.echo(said.format(item=f"“{make_excerpt(item.title or item.text, 80)}”"))


def _find_suggestion_ids(held: LockedItem, names: list[str]) -> list[int]:
    """The suggestions of these names."""
    known = {one.normalised_name: one.id for one in held.suggestions}
    for name in names:
        if personal_key(name) not in known:
            proposed = ", ".join(one.name for one in held.suggestions) or "nothing"
            raise InvalidValue(
                problem=(
                    f'"{make_excerpt(name, 80)}" is not proposed for this item; proposed is:'
                    f" {make_excerpt(proposed, 300)}."
                )
            )
    return [known[personal_key(name)] for name in dict.fromkeys(names)]
