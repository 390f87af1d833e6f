"""The life of a link: disable, enable, renew, delete, undo."""

from typing import Annotated

import typer

from refract.cli.common import parse_time
from refract.cli.links.context import LinkArgument, LinkCommandContext, change_link
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.db.session import WriteSession
from refract.links import service
from refract.links.service import LockedLink


def disable(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Stop a link from redirecting; it keeps everything."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.disable_link(session, desk.caller, link_id, desk.rt.clock.now())

    change_link(
        which,
        act,
        "Disabled {link}. Let it redirect again with: refract links enable {link}",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def enable(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Let a disabled link redirect again."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.enable_link(session, desk.caller, link_id, desk.rt.clock.now())

    change_link(which, act, "Enabled {link}.", user=user, as_json=as_json, data_dir=data_dir)


def renew(
    which: LinkArgument,
    expires: Annotated[
        str,
        typer.Option(
            "--expires",
            help="30d, 2026-12-31 or a moment; never removes the expiry.",
            metavar="WHEN",
        ),
    ] = "never",
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Give a link a new expiry, or none."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        now = desk.rt.clock.now()
        until = None if expires == "never" else parse_time(expires, now)
        return await service.renew_link(session, desk.caller, link_id, now, until)

    change_link(
        which,
        act,
        "Renewed {link}. It expires: {expiry}.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def delete(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Delete a link. Its names stay with it, and for 24 hours it can be brought back."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.delete_link(session, desk.caller, link_id, desk.rt.clock.now())

    change_link(
        which,
        act,
        "Deleted {link}. Bring it back with: refract links undo {code}",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def undo(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Take back the latest delete, disable or edit, within 24 hours."""

    async def act(session: WriteSession, desk: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.undo_link(session, desk.namespace, desk.caller, link_id)

    change_link(
        which,
        act,
        "Undone: {link} is what it was before.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )
