"""Changes of a link by a command, and how they are reported."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import typer

from refract.cli.common import load_command_settings, run_on_data
from refract.cli.links.context import LinkCommandContext, load_context
from refract.cli.output import print_json
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.links.schemas import LinkOut
from refract.links.service import LockedLink

LinkCommandAction = Callable[[WriteSession, LinkCommandContext, int], Awaitable[LockedLink]]


def change_link(
    which: str,
    act: LinkCommandAction,
    message: str,
    *,
    user: str | None,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    """Change a link in one transaction and print `message`.

    The message may contain `{link}`, `{code}` and `{expiry}`.
    """

    async def run(rt: Runtime) -> LinkOut:
        context = await load_context(rt, user)
        async with rt.db.write() as session:
            link = await context.find_link(session, which)
            locked = await act(session, context, link.id)
            return await context.to_schema(session, locked.link)

    print_change(run_on_data(load_command_settings(data_dir), run), message, as_json=as_json)


def print_change(link: LinkOut, message: str, *, as_json: bool) -> None:
    """Print the changed link as JSON, or the message about it."""
    if as_json:
        print_json(link)
        return
    expiry = f"{link.expires_at:%Y-%m-%d %H:%M} UTC" if link.expires_at else "never"
    typer.echo(
        message.format(
            link=link.names[0] if link.names else link.code, code=link.code, expiry=expiry
        )
    )
