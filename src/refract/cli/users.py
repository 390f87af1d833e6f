"""`refract users`: invitations of people."""

from typing import Annotated

import typer

from refract.cli.common import load_command_settings, run_on_data, validate_options
from refract.cli.options import AsJson, DataDir
from refract.cli.output import print_json, print_json_list
from refract.cli.tables import make_console, make_safe_text, make_table
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import parse_id
from refract.identity.errors import AccountInvitationNotFound, InvitationsDisabled
from refract.identity.invitations import service
from refract.identity.invitations.schemas import (
    DEFAULT_VALID_DAYS,
    MAX_VALID_DAYS,
    AccountInvitationCreate,
    AccountInvitationOut,
    NewAccountInvitation,
)
from refract.identity.models import UserRole
from refract.identity.users import ensure_owner
from refract.server.installation import read_address

app = typer.Typer(help="Invite people, list and revoke invitations.", no_args_is_help=True)
MAX_LISTED = 200


@app.command("invite")
def invite(
    name: Annotated[
        str | None, typer.Option("--name", help="Their name, which they can change.")
    ] = None,
    email: Annotated[
        str | None, typer.Option("--email", help="Their email address. You vouch for it.")
    ] = None,
    *,
    role: Annotated[UserRole, typer.Option("--role", help="user or admin.")] = UserRole.USER,
    days: Annotated[
        int,
        typer.Option("--days", min=1, max=MAX_VALID_DAYS, help="Days until it expires."),
    ] = DEFAULT_VALID_DAYS,
    note: Annotated[str, typer.Option("--note", help="Shown with the invitation.")] = "",
    no_email: Annotated[
        bool, typer.Option("--no-email", help="Print the link, even if it could be sent.")
    ] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Invite a person to create an account, and print the one-time link.

    With --email and a mail server (REFRACT_SMTP_URL), the running server sends the link instead.
    """
    settings = load_command_settings(data_dir)
    served = read_address(settings)
    if served is not None and not served.signin_links:
        raise InvitationsDisabled
    new = validate_options(
        AccountInvitationCreate,
        name=name,
        email=email,
        role=role.value,
        valid_days=days,
        note=note,
        send_email=not no_email,
    )

    async def run(rt: Runtime) -> NewAccountInvitation:
        async with rt.db.write() as session:
            by, _ = await ensure_owner(session, rt)
            row, url = await service.create_invitation(session, rt, by, new)
            shown = AccountInvitationOut.from_invitation(row, by, rt.clock.now())
        return NewAccountInvitation(**dict(shown), url=url)

    made = run_on_data(settings, run)
    if as_json:
        print_json(made)
    else:
        typer.echo(made.url or f"The server sends the link to {made.email}.")


@app.command("invitations")
def list_invitations(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List invitations, newest first, at most 200."""

    async def run(rt: Runtime) -> list[AccountInvitationOut]:
        async with rt.db.read() as session:
            page = await service.list_invitations(
                session, CursorCodec(rt.secret), limit=MAX_LISTED, cursor=None
            )
        now = rt.clock.now()
        return [AccountInvitationOut.from_invitation(*row, now) for row in page.items]

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json_list(found)
        return
    if not found:
        typer.echo("No invitations yet. Create one with: refract users invite")
        return
    table = make_table("id", "name", "email", "role", "state", "created", "expires")
    for invitation in found:
        table.add_row(
            str(invitation.id),
            *(make_safe_text(text) for text in (invitation.name, invitation.email)),
            invitation.role,
            invitation.state,
            f"{invitation.created_at:%Y-%m-%d %H:%M}",
            f"{invitation.expires_at:%Y-%m-%d %H:%M}",
        )
    make_console().print(table)


@app.command("revoke")
def revoke(
    invitation: Annotated[str, typer.Argument(help="Its id, as listed.", metavar="ID")],
    data_dir: DataDir = None,
) -> None:
    """Revoke an open invitation. Its link stops working immediately."""

    async def run(rt: Runtime) -> None:
        try:
            number = parse_id(invitation)
        except ValueError as exc:
            raise AccountInvitationNotFound from exc
        async with rt.db.write() as session:
            by, _ = await ensure_owner(session, rt)
            await service.revoke_invitation(session, rt, by, number)

    run_on_data(load_command_settings(data_dir), run)
    typer.echo("Revoked the invitation.")
