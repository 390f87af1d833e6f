"""`refract links teams`."""

from typing import Annotated

import typer

from refract.cli.links.changes import change_link
from refract.cli.links.context import LinkArgument, LinkCommandContext
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.db.session import WriteSession
from refract.links import service
from refract.links.errors import OwnerNotFound
from refract.links.service import LockedLink
from refract.teams.queries import find_team_id

app = typer.Typer(help="Add, remove and transfer a link to teams.", no_args_is_help=True)
TeamArgument = Annotated[str, typer.Argument(help="Handle of the team.", metavar="TEAM")]


@app.command("add")
def add_team(
    which: LinkArgument,
    team: TeamArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Make a team a co-owner of a link. Its members can edit it then."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.add_team(
            session, context.caller, link_id, team, context.rt.clock.now()
        )

    change_link(
        which, act, "Added a team to {link}.", user=user, as_json=as_json, data_dir=data_dir
    )


@app.command("transfer")
def transfer_to_team(
    which: LinkArgument,
    team: TeamArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Make a team the owner of a link. The previous owner stays as co-owner or as a member."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.add_team(
            session, context.caller, link_id, team, context.rt.clock.now(), primary=True
        )

    change_link(which, act, "Transferred {link}.", user=user, as_json=as_json, data_dir=data_dir)


@app.command("remove")
def remove_team(
    which: LinkArgument,
    team: TeamArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Remove a team from the owners of a link."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        team_id = await find_team_id(session, team)
        if team_id is None:
            raise OwnerNotFound
        return await service.remove_team(
            session, context.caller, link_id, team_id, context.rt.clock.now()
        )

    change_link(
        which, act, "Removed a team from {link}.", user=user, as_json=as_json, data_dir=data_dir
    )
