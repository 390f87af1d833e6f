"""The life of a link: disable, enable, renew, delete, undo."""

from typing import Annotated

import typer

from refract.cli.common import moment
from refract.cli.links.desk import Desk, Which, change_one
from refract.cli.options import AsJson, AsUser, DataDir
from refract.core.db import WriteSession
from refract.links import service
from refract.links.service import Held


def disable(which: Which, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Stop a link from redirecting; it keeps everything."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        return await service.disable_link(session, desk.who, link_id, desk.rt.clock.now())

    change_one(
        which,
        act,
        "Disabled {link}. Let it redirect again with: refract links enable {link}",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def enable(which: Which, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Let a disabled link redirect again."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        return await service.enable_link(session, desk.who, link_id, desk.rt.clock.now())

    change_one(which, act, "Enabled {link}.", user=user, as_json=as_json, data_dir=data_dir)


def renew(
    which: Which,
    expires: Annotated[
        str, typer.Option("--expires", help="30d, 2026-12-31 or a moment; never removes the expiry.", metavar="WHEN")
    ] = "never",
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Give a link a new expiry, or none."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        now = desk.rt.clock.now()
        until = None if expires == "never" else moment(expires, now)
        return await service.renew_link(session, desk.who, link_id, now, until)

    change_one(which, act, "Renewed {link}. It expires: {expiry}.", user=user, as_json=as_json, data_dir=data_dir)


def delete(which: Which, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Delete a link. Its names stay with it, and for 24 hours it can be brought back."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        return await service.delete_link(session, desk.who, link_id, desk.rt.clock.now())

    change_one(which, act, "Deleted {link}. Bring it back with: refract links undo {code}", user=user, as_json=as_json, data_dir=data_dir)


def undo(which: Which, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Take back the latest delete, disable or edit, within 24 hours."""

    async def act(session: WriteSession, desk: Desk, link_id: int) -> Held:
        return await service.undo(session, desk.space, desk.who, link_id)

    change_one(which, act, "Undone: {link} is what it was before.", user=user, as_json=as_json, data_dir=data_dir)
