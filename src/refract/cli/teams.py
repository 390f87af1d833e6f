"""`refract teams`."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from refract.cli.common import (
    get_acting_user,
    load_command_settings,
    run_on_data,
    validate_options,
)
from refract.cli.keys import KeyExpiryOption, parse_expiry, print_keys
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json, print_json_list
from refract.cli.tables import make_console, make_safe_text, make_table
from refract.core.db.session import WriteSession
from refract.core.pagination import MAX_LIMIT, CursorCodec
from refract.core.runtime import Runtime
from refract.domains.hosts import to_other_host
from refract.identity.errors import KeyNotFound
from refract.identity.models import ApiKey, Scope, UserRole
from refract.identity.schemas import KeyOut, check_key_expiry
from refract.identity.users import fold_email
from refract.links import service as links
from refract.registry import list_team_hooks
from refract.teams import keys, queries, service
from refract.teams.errors import TeamCreationForbidden, TeamMemberNotFound
from refract.teams.models import TeamRole
from refract.teams.queries import TeamCaller, TeamView
from refract.teams.schemas import (
    TeamCreate,
    TeamKeyCreate,
    TeamMemberCreate,
    TeamMemberOut,
    TeamOut,
    TeamPatch,
)

app = typer.Typer(help="Create teams and manage their members.", no_args_is_help=True)
keys_app = typer.Typer(help="Create, list and revoke API keys of a team.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")
TeamArgument = Annotated[str, typer.Argument(help="Handle of the team.", metavar="TEAM")]
MemberArgument = Annotated[str, typer.Argument(help="Email of the account.", metavar="EMAIL")]
RoleOption = Annotated[TeamRole, typer.Option("--role", help="member or manager.")]
CommandResultT = TypeVar("CommandResultT")
TeamAction = Callable[[WriteSession, Runtime, TeamCaller, TeamView], Awaitable[CommandResultT]]


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="1 to 80 characters.")],
    handle: Annotated[
        str | None, typer.Option("--handle", help="Default: derived from the name.")
    ] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Create a team. The acting user becomes its manager."""
    new = validate_options(TeamCreate, name=name, **({"slug": handle} if handle else {}))

    async def run(rt: Runtime) -> TeamOut:
        caller = await _load_caller(rt, user)
        if not caller.is_admin and rt.settings.team_creation != "everyone":
            raise TeamCreationForbidden
        async with rt.db.write() as session:
            return (await service.create_team(session, caller, new, rt.clock.now())).to_schema()

    team = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json(team)
    else:
        typer.echo(f"Created {team.slug}. Add members with: refract teams add {team.slug} EMAIL")


@app.command("list")
def list_teams(
    everyone: Annotated[bool, typer.Option("--all", help="All teams, for administrators.")] = False,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the teams of a user, or all."""

    async def run(rt: Runtime) -> list[TeamOut]:
        caller = await _load_caller(rt, user)
        found: list[TeamOut] = []
        cursor: str | None = None
        while True:
            async with rt.db.read() as session:
                page = await queries.load_teams_page(
                    session,
                    CursorCodec(rt.secret),
                    caller,
                    limit=MAX_LIMIT,
                    cursor=cursor,
                    everyone=everyone and caller.is_admin,
                )
            found += [view.to_schema() for view in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return found

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json_list(found)
    elif not found:
        typer.echo("No teams yet. Create one with: refract teams create NAME")
    else:
        table = make_table("handle", "name", "role", "members")
        for team in found:
            table.add_row(team.slug, make_safe_text(team.name), team.role or "–", str(team.members))
        make_console().print(table)


@app.command("members")
def list_members(
    team: TeamArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """List the members of a team, managers first."""

    async def run(rt: Runtime) -> list[TeamMemberOut]:
        caller = await _load_caller(rt, user)
        async with rt.db.read() as session:
            view = await queries.view_team_by_slug(session, caller, team)
            return await queries.list_members(session, view.team.id)

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json_list(found)
        return
    table = make_table("email", "name", "role")
    for member in found:
        table.add_row(make_safe_text(member.email), make_safe_text(member.name), member.role)
    make_console().print(table)


@app.command("edit")
def edit(
    team: TeamArgument,
    name: Annotated[str | None, typer.Option("--name", help="New name.")] = None,
    handle: Annotated[str | None, typer.Option("--handle", help="New handle.")] = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Rename a team, or change its handle."""
    given = {"name": name, "slug": handle}
    changes = validate_options(TeamPatch, **{key: text for key, text in given.items() if text})

    async def act(session: WriteSession, rt: Runtime, caller: TeamCaller, view: TeamView) -> str:
        changed = await service.change_team(session, caller, view.team.id, changes, rt.clock.now())
        return changed.team.slug

    typer.echo(f"Updated {_change_team(team, act, user, data_dir)}.")


@app.command("defaults")
def set_defaults(
    team: TeamArgument,
    domain: Annotated[
        str | None, typer.Option("--domain", help="Host of its new links. Default: the main one.")
    ] = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag of its new links. Repeatable.")
    ] = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Set domain and tags of new links that a team owns. Omitted ones are cleared."""

    async def act(session: WriteSession, rt: Runtime, caller: TeamCaller, view: TeamView) -> None:
        host = to_other_host(rt.settings.public_url, domain)
        await links.set_team_defaults(
            session, caller, view.team.id, host, tags or [], rt.clock.now()
        )

    _change_team(team, act, user, data_dir)
    typer.echo(f"Updated the defaults of {team}.")


@app.command("delete")
def delete(team: TeamArgument, user: AsUser = None, data_dir: DataDir = None) -> None:
    """Delete a team that owns no links and lists."""

    async def act(session: WriteSession, rt: Runtime, caller: TeamCaller, view: TeamView) -> None:
        await service.delete_team(session, caller, view.team.id, list_team_hooks(), rt)

    _change_team(team, act, user, data_dir)
    typer.echo(f"Deleted {team}.")


@app.command("add")
def add_member(
    team: TeamArgument,
    email: MemberArgument,
    role: RoleOption = TeamRole.MEMBER,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Add a member to a team."""
    new = validate_options(TeamMemberCreate, email=email, role=role)

    async def act(session: WriteSession, rt: Runtime, caller: TeamCaller, view: TeamView) -> None:
        await service.add_member(
            session, caller, view.team.id, new, list_team_hooks(), rt.clock.now()
        )

    _change_team(team, act, user, data_dir)
    typer.echo(f"Added {email} to {team}.")


@app.command("role")
def change_role(
    team: TeamArgument,
    email: MemberArgument,
    role: Annotated[TeamRole, typer.Argument(help="member or manager.")],
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Make a member a manager, or the other way round."""

    async def act(session: WriteSession, rt: Runtime, caller: TeamCaller, view: TeamView) -> None:
        member_id = await _find_member(session, view.team.id, email)
        await service.change_role(session, caller, view.team.id, member_id, role, rt)

    _change_team(team, act, user, data_dir)
    typer.echo(f"{email} is a {role} of {team}.")


@app.command("remove")
def remove_member(
    team: TeamArgument, email: MemberArgument, user: AsUser = None, data_dir: DataDir = None
) -> None:
    """Remove a member from a team. They lose access to its links immediately."""

    async def act(session: WriteSession, rt: Runtime, caller: TeamCaller, view: TeamView) -> None:
        member_id = await _find_member(session, view.team.id, email)
        await service.remove_member(session, caller, view.team.id, member_id, list_team_hooks(), rt)

    _change_team(team, act, user, data_dir)
    typer.echo(f"Removed {email} from {team}.")


def _change_team(
    slug: str, act: TeamAction[CommandResultT], user: str | None, data_dir: Path | None
) -> CommandResultT:
    """Run a change of a team in one transaction."""

    async def run(rt: Runtime) -> CommandResultT:
        caller = await _load_caller(rt, user)
        async with rt.db.write() as session:
            view = await queries.view_team_by_slug(session, caller, slug)
            return await act(session, rt, caller, view)

    return run_on_data(load_command_settings(data_dir), run)


async def _load_caller(rt: Runtime, email: str | None) -> TeamCaller:
    person = await get_acting_user(rt, email)
    return TeamCaller(person.id, person.role == UserRole.ADMIN)


async def _find_member(session: WriteSession, team_id: int, email: str) -> int:
    for member in await queries.list_members(session, team_id):
        if fold_email(member.email) == fold_email(email):
            return member.user_id
    raise TeamMemberNotFound


# API keys of a team.


@keys_app.command("create")
def create_key(
    team: TeamArgument,
    name: Annotated[str, typer.Option("--name", help="A name to recognize it by.")],
    scope: Annotated[
        list[Scope] | None,
        typer.Option("--scope", help="read or write. Repeat for both, which is the default."),
    ] = None,
    expires: KeyExpiryOption = None,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Create a key of a team and print only the key. It is shown once."""
    new = validate_options(TeamKeyCreate, name=name, **({"scopes": scope} if scope else {}))

    async def act(session: WriteSession, rt: Runtime, caller: TeamCaller, view: TeamView) -> str:
        ends = None if expires is None else parse_expiry(expires, rt.clock.now())
        check_key_expiry(ends, rt.clock.now())
        wanted = new.model_copy(update={"expires_at": ends})
        hooks = list_team_hooks()
        _, clear = await keys.create_team_key(session, rt, caller, view.team.id, wanted, hooks)
        return clear

    typer.echo(_change_team(team, act, user, data_dir))


@keys_app.command("list")
def list_keys(
    team: TeamArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """List the keys of a team."""

    async def run(rt: Runtime) -> tuple[list[ApiKey], datetime]:
        caller = await _load_caller(rt, user)
        async with rt.db.read() as session:
            team_id = (await queries.view_team_by_slug(session, caller, team)).team.id
            found = await keys.list_team_keys(session, caller, team_id, include_revoked=True)
            return found, rt.clock.now()

    found, now = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json_list(KeyOut.from_key(key, now) for key in found)
    elif found:
        print_keys(found, now)
    else:
        typer.echo(f"No keys yet. Create one with: refract teams keys create {team} --name NAME")


@keys_app.command("revoke")
def revoke_key(
    team: TeamArgument,
    which: Annotated[str, typer.Argument(help="Its id, as listed.", metavar="KEY")],
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Revoke a key of a team. It stops working immediately."""

    async def act(session: WriteSession, rt: Runtime, caller: TeamCaller, view: TeamView) -> None:
        for key in await keys.list_team_keys(session, caller, view.team.id):
            if which in (str(key.id), key.key_prefix):
                await keys.revoke_team_key(session, rt, caller, view.team.id, key.id)
                return
        raise KeyNotFound

    _change_team(team, act, user, data_dir)
    typer.echo(f"Revoked {which}.")
