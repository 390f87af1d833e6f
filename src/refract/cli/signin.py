"""`refract signin-link`."""

from typing import Annotated

import typer

from refract.cli.common import load_command_settings, run_on_data
from refract.cli.options import DataDir
from refract.core.runtime import Runtime
from refract.identity.errors import SignInLinksDisabled
from refract.identity.sessions import create_signin_link
from refract.identity.users import ensure_owner, get_active_user
from refract.server.installation import read_address


def signin_link(
    data_dir: DataDir = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            help="Sign in as this user, by email or id. Default: the owner.",
            metavar="ACCOUNT",
        ),
    ] = None,
) -> None:
    """Print a one-time sign-in link. It expires in an hour."""
    settings = load_command_settings(data_dir)
    served = read_address(settings)
    if not settings.signin_links_allowed or (served is not None and not served.signin_links):
        raise SignInLinksDisabled

    async def run(rt: Runtime) -> str:
        async with rt.db.write() as session:
            person = (
                await get_active_user(session, user)
                if user
                else (await ensure_owner(session, rt))[0]
            )
            return await create_signin_link(session, rt, person)

    typer.echo(run_on_data(settings, run))
