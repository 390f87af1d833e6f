"""`refract links`: disable, enable, renew, delete, undo."""

from typing import Annotated

import typer

from refract.cli.common import parse_time
from refract.cli.links.changes import change_link
from refract.cli.links.context import LinkArgument, LinkCommandContext
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.db.session import WriteSession
from refract.links import service
from refract.links.service import LockedLink
from refract.names.service import namespace_of


def disable(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Disable a link. It stops redirecting and keeps everything."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.disable_link(session, context.caller, link_id, context.rt.clock.now())

    change_link(
        which,
        act,
        "Disabled {link}. Enable it with: refract links enable {link}",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def enable(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Enable a disabled link."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.enable_link(session, context.caller, link_id, context.rt.clock.now())

    change_link(which, act, "Enabled {link}.", user=user, as_json=as_json, data_dir=data_dir)


def renew(
    which: LinkArgument,
    expires: Annotated[
        str,
        typer.Option(
            "--expires",
            help="30d, 2026-12-31, a time, or never to remove the expiry.",
            metavar="WHEN",
        ),
    ] = "never",
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Set or remove the expiry of a link."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        now = context.rt.clock.now()
        until = None if expires == "never" else parse_time(expires, now)
        return await service.renew_link(session, context.caller, link_id, now, until)

    change_link(
        which,
        act,
        "Renewed {link}. Expires: {expiry}.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def delete(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Delete a link. Its names stay reserved. You can undo this for 24 hours."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.delete_link(session, context.caller, link_id, context.rt.clock.now())

    change_link(
        which,
        act,
        "Deleted {link}. Undo with: refract links undo {code}",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def undo(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Undo the latest delete, disable or edit, within 24 hours."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.undo_link(session, namespace_of(context.rt), context.caller, link_id)

    change_link(
        which,
        act,
        "Undone: {link} is restored.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )
