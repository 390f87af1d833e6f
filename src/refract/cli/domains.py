"""`refract domains`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from refract.cli.common import (
    get_acting_user,
    load_command_settings,
    run_on_data,
    validate_options,
)
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json, print_json_list
from refract.cli.tables import make_console, make_safe_text, make_table
from refract.core.pagination import MAX_LIMIT, CursorCodec
from refract.core.runtime import Runtime
from refract.domains import queries, service
from refract.domains.hosts import get_default_host, parse_domain_host
from refract.domains.models import DomainCreators, DomainState
from refract.domains.queries import DomainCaller
from refract.domains.schemas import DomainCreate, DomainOut, DomainPatch
from refract.identity.errors import AdminRequired
from refract.identity.models import User, UserRole
from refract.registry import build_domain_hooks

app = typer.Typer(help="Add domains and change their settings.", no_args_is_help=True)
HostArgument = Annotated[str, typer.Argument(help="Host of the domain.", metavar="HOST")]
TitleOption = Annotated[str | None, typer.Option("--title", help="Up to 80 characters.")]
RootOption = Annotated[
    str | None, typer.Option("--root-url", help="Where the host itself leads.", metavar="URL")
]
UnknownOption = Annotated[
    str | None, typer.Option("--unknown-url", help="Where unknown names lead.", metavar="URL")
]
GoneOption = Annotated[
    str | None,
    typer.Option(
        "--gone-url", help="Where expired, disabled and deleted links lead.", metavar="URL"
    ),
]
StatusOption = Annotated[
    int | None,
    typer.Option("--default-status", help="Redirect status of new links: 301, 302, 307 or 308."),
]
CreatorsOption = Annotated[
    DomainCreators | None,
    typer.Option("--creators", help="Who may create links: everyone, team or administrators."),
]
TeamOption = Annotated[
    str | None, typer.Option("--team", help="Handle of the team that may create links.")
]


@app.command("list")
def list_domains(user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List all domains, or those on which a user may create links."""
    settings = load_command_settings(data_dir)

    async def run(rt: Runtime) -> list[DomainOut]:
        person = await get_acting_user(rt, user)
        return await _load_all(rt, DomainCaller(person.id, person.role == UserRole.ADMIN))

    found = run_on_data(settings, run)
    if as_json:
        print_json_list(found)
        return
    table = make_table("host", "title", "state", "who may create", "links")
    table.add_row(get_default_host(settings.public_url), "", "default", "everyone", "")
    for domain in found:
        who = f"team {domain.team}" if domain.team else domain.creators.value
        links = "" if domain.links is None else str(domain.links)
        table.add_row(domain.host, make_safe_text(domain.title or ""), domain.state, who, links)
    make_console().print(table)
    if not found:
        typer.echo("No other domains yet. Add one with: refract domains create HOST")


@app.command("create")
def create(
    host: HostArgument,
    *,
    title: TitleOption = None,
    root_url: RootOption = None,
    unknown_url: UnknownOption = None,
    gone_url: GoneOption = None,
    default_status: StatusOption = None,
    creators: CreatorsOption = None,
    team: TeamOption = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Add a domain. Point its DNS here and give it a certificate."""
    given = _collect(
        title=title,
        root_destination=root_url,
        unknown_destination=unknown_url,
        gone_destination=gone_url,
        default_redirect_status=default_status,
        creators=creators,
        team=team,
    )
    new = validate_options(DomainCreate, host=host, **given)

    async def run(rt: Runtime) -> DomainOut:
        actor, hooks = await _load_admin(rt, user), build_domain_hooks()
        name = parse_domain_host(new.host, rt.settings.public_url)
        checked = await service.check_fallbacks(rt, hooks, new)
        async with rt.db.write() as session:
            await service.create_domain(session, hooks, actor.id, name, checked, rt.clock.now())
        return await _load_one(rt, actor, name)

    domain = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json(domain)
    else:
        typer.echo(f"Added {domain.host}. Point its DNS here and give it a certificate.")


@app.command("show")
def show(
    host: HostArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Show a domain with its settings."""

    async def run(rt: Runtime) -> DomainOut:
        return await _load_one(rt, await get_acting_user(rt, user), host)

    domain = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json(domain)
        return
    table = make_table("setting", "value")
    for name, value in domain.model_dump(mode="json").items():
        if value is not None:
            table.add_row(name.replace("_", " "), make_safe_text(str(value)))
    make_console().print(table)


@app.command("update")
def update(
    host: HostArgument,
    *,
    title: TitleOption = None,
    root_url: RootOption = None,
    unknown_url: UnknownOption = None,
    gone_url: GoneOption = None,
    default_status: StatusOption = None,
    creators: CreatorsOption = None,
    team: TeamOption = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Change settings of a domain. An empty text removes a title or a URL."""
    given = _collect(
        title=title,
        root_destination=root_url,
        unknown_destination=unknown_url,
        gone_destination=gone_url,
        default_redirect_status=default_status,
        creators=creators,
        team=team,
    )
    domain = _change(host, validate_options(DomainPatch, **given), user, data_dir)
    if as_json:
        print_json(domain)
    else:
        typer.echo(f"Updated {domain.host}.")


@app.command("disable")
def disable(host: HostArgument, user: AsUser = None, data_dir: DataDir = None) -> None:
    """Stop a domain. Its links are kept."""
    domain = _change(host, DomainPatch(state=DomainState.DISABLED), user, data_dir)
    typer.echo(f"Disabled {domain.host}.")


@app.command("enable")
def enable(host: HostArgument, user: AsUser = None, data_dir: DataDir = None) -> None:
    """Start a disabled domain again."""
    domain = _change(host, DomainPatch(state=DomainState.ACTIVE), user, data_dir)
    typer.echo(f"Enabled {domain.host}.")


@app.command("delete")
def delete(host: HostArgument, user: AsUser = None, data_dir: DataDir = None) -> None:
    """Delete a domain with no link, list or name on it."""

    async def run(rt: Runtime) -> str:
        actor, hooks = await _load_admin(rt, user), build_domain_hooks()
        async with rt.db.write() as session:
            deleted = await service.delete_domain(session, hooks, actor.id, host, rt.clock.now())
            return deleted.host

    typer.echo(f"Deleted {run_on_data(load_command_settings(data_dir), run)}.")


def _collect(**options: Any) -> dict[str, Any]:
    """Return the fields of the options that were given. A team alone means that it may create."""
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("team"):
        given.setdefault("creators", DomainCreators.TEAM)
    return {name: None if value == "" else value for name, value in given.items()}


def _change(host: str, changes: DomainPatch, user: str | None, data_dir: Path | None) -> DomainOut:
    async def run(rt: Runtime) -> DomainOut:
        actor, hooks = await _load_admin(rt, user), build_domain_hooks()
        checked = await service.check_fallbacks(rt, hooks, changes)
        async with rt.db.write() as session:
            await service.change_domain(session, hooks, actor.id, host, checked, rt.clock.now())
        return await _load_one(rt, actor, host)

    return run_on_data(load_command_settings(data_dir), run)


async def _load_admin(rt: Runtime, email: str | None) -> User:
    person = await get_acting_user(rt, email)
    if person.role != UserRole.ADMIN:
        raise AdminRequired
    return person


async def _load_one(rt: Runtime, person: User, host: str) -> DomainOut:
    caller = DomainCaller(person.id, person.role == UserRole.ADMIN)
    async with rt.db.read() as session:
        view = await queries.view_domain(session, caller, host)
    return view.to_schema(rt.settings.public_url)


async def _load_all(rt: Runtime, caller: DomainCaller) -> list[DomainOut]:
    found: list[DomainOut] = []
    cursor: str | None = None
    while True:
        async with rt.db.read() as session:
            page = await queries.load_domains_page(
                session, CursorCodec(rt.secret), caller, limit=MAX_LIMIT, cursor=cursor
            )
        found += [view.to_schema(rt.settings.public_url) for view in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found
