"""`refract save`."""

import sys
from typing import Annotated

import typer

from refract.cli.common import get_acting_user, load_command_settings, run_on_data, validate_options
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json
from refract.core.runtime import Runtime
from refract.library.errors import EmptyText
from refract.library.queries.serializers import serialize_items
from refract.library.recognition import split_paste
from refract.library.schemas import ItemCreate, ItemOut
from refract.library.service import capture_item


def save(
    text: Annotated[
        str | None,
        typer.Argument(
            help="A URL or a note. Omit it, or use -, to read standard input.", metavar="TEXT"
        ),
    ] = None,
    *,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Tag. Repeat for several.")] = None,
    enrich: Annotated[
        bool,
        typer.Option(
            "--enrich/--no-enrich", help="Suggest title, summary and tags, or save it as it is."
        ),
    ] = True,
    unread: Annotated[bool, typer.Option("--unread", help="Mark it to be read later.")] = False,
    favorite: Annotated[bool, typer.Option("--favorite", help="Add it to favorites.")] = False,
    archived: Annotated[bool, typer.Option("--archive", help="Move it to the archive.")] = False,
    notes: Annotated[str | None, typer.Option("--notes", help="Your own words about it.")] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Save a note or a URL to the library and print only its id.

    Several URLs, one per line, become one item each. The running server adds suggestions;
    without one, items wait until it starts.
    """
    settings = load_command_settings(data_dir)
    if text in (None, "-"):
        text = sys.stdin.read()

    async def run(rt: Runtime) -> list[ItemOut]:
        texts = split_paste(text or "")
        if not texts:
            raise EmptyText
        fields = {
            "enrich": enrich,
            "new_tags": tag or [],
            "unread": unread,
            "favorite": favorite,
            "archived": archived,
            **({"notes": notes} if notes is not None else {}),
        }
        new_items = [validate_options(ItemCreate, text=line, **fields) for line in texts]
        person = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            captured = [await capture_item(session, rt, person, item) for item in new_items]
            return await serialize_items(session, [capture.item for capture in captured])

    for item in run_on_data(settings, run):
        if as_json:
            print_json(item)
        else:
            typer.echo(str(item.id))
            if item.duplicate_of is not None:
                typer.secho(f"Duplicate of item {item.duplicate_of}.", err=True)
