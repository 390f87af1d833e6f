"""`refract signin-link`."""

from typing import Annotated

import typer

from refract.cli.common import command_settings, on_data
from refract.cli.installation import read_address
from refract.cli.options import DataDir
from refract.core.runtime import Runtime
from refract.identity.errors import SigninLinksOff
from refract.identity.people import ensure_owner, person_by_email
from refract.identity.sessions import make_signin_link


def signin_link(
    data_dir: DataDir = None,
    user: Annotated[str | None, typer.Option("--user", help="Sign in as this person instead of the owner.", metavar="EMAIL")] = None,
) -> None:
    """Print a one-time sign-in link. It works once, within the hour."""
    settings = command_settings(data_dir)
    served = read_address(settings)
    if not settings.signin_links_allowed or (served is not None and not served.signin_links):
        raise SigninLinksOff

    async def run(rt: Runtime) -> str:
        async with rt.db.write() as session:
            person = await person_by_email(session, user) if user else (await ensure_owner(session, rt))[0]
            return await make_signin_link(session, rt, person)

    typer.echo(on_data(settings, run))
