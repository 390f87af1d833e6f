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
            help="A thought or an address; - or nothing reads standard input.", metavar="TEXT"
        ),
    ] = None,
    *,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="May be given several times.")
    ] = None,
    enrich: Annotated[
        bool,
        typer.Option(
            "--enrich/--no-enrich", help="Let the assistant describe it, or file it as it is."
        ),
    ] = True,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Save a text or an address to the library and print its id, and only that, on standard output.

    Several addresses, one a line, are as many items. A running server describes them; without one they wait for the next start.
    """
    settings = load_command_settings(data_dir)
    if text in (None, "-"):
        text = sys.stdin.read()

    async def run(rt: Runtime) -> list[ItemOut]:
        texts = split_paste(text or "")
        if not texts:
            raise EmptyText
        wishes = [
            validate_options(ItemCreate, text=one, enrich=enrich, new_tags=tag or [])
            for one in texts
        ]
        person = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            made = [await capture_item(session, rt, person, wish) for wish in wishes]
            return await serialize_items(session, [one.item for one in made])

    for item in run_on_data(settings, run):
        if as_json:
            print_json(item)
        else:
            typer.echo(str(item.id))
            if item.duplicate_of is not None:
                typer.secho(f"You have this page already, as {item.duplicate_of}.", err=True)
