"""`refract links names`."""

from typing import Annotated

import typer

from refract.cli.links.desk import Desk, Which, change_one
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.db import WriteSession
from refract.links import service
from refract.links.service import Held

app = typer.Typer(help="Names of a link: add one, or give one back.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="1 to 50 letters, digits, - and _.")]


@app.command("add")
def add(which: Which, name: Name, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Give a link one more name."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        return await service.add_name(session, desk.space, desk.who, link_id, name)

    change_one(which, act, f"{{link}} is now called {_braces(name)}, too.", user=user, as_json=as_json, data_dir=data_dir)


@app.command("release")
def release(which: Which, name: Name, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Give a name back, so that anybody may take it."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        return await service.release_name(session, desk.space, desk.who, link_id, name)

    change_one(which, act, f"The name {_braces(name)} is free.", user=user, as_json=as_json, data_dir=data_dir)


def _braces(name: str) -> str:
    return name.replace("{", "{{").replace("}", "}}")
