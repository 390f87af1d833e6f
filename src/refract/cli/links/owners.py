"""`refract links owners`."""

from typing import Annotated

import typer

from refract.cli.links.desk import Desk, Which, change_one
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.db import WriteSession
from refract.identity.people import fold_email
from refract.links import service
from refract.links.errors import OwnerNotFound
from refract.links.queries import owners_of
from refract.links.service import Held

app = typer.Typer(help="Owners of a link: add, remove, transfer.", no_args_is_help=True)
Email = Annotated[str, typer.Argument(help="Whose account it is.", metavar="EMAIL")]


@app.command("add")
def add(which: Which, email: Email, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Let somebody else own a link too, at once: what the operator does needs nobody's acceptance."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        return await service.add_owner(session, desk.who, link_id, email, desk.rt.clock.now())

    change_one(which, act, "{link} has one owner more.", user=user, as_json=as_json, data_dir=data_dir)


@app.command("remove")
def remove(which: Which, email: Email, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Take a link from a co-owner."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        owners = await owners_of(session, link_id)
        found = next((owner.user_id for owner, person in owners if person.email_folded == fold_email(email)), None)
        if found is None:
            raise OwnerNotFound
        return await service.remove_owner(session, desk.who, link_id, found, desk.rt.clock.now())

    change_one(which, act, "{link} has one owner less.", user=user, as_json=as_json, data_dir=data_dir)


@app.command("transfer")
def transfer(which: Which, email: Email, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Make somebody else the primary owner, at once; who was it before stays a co-owner."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        return await service.transfer_link(session, desk.who, link_id, email, desk.rt.clock.now())

    change_one(which, act, "{link} has a new primary owner.", user=user, as_json=as_json, data_dir=data_dir)
