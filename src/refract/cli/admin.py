"""`refract admin`: accounts and database users."""

from typing import Annotated

import typer
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from refract.admin import queries, service
from refract.admin.queries import PeopleFilter
from refract.admin.schemas import (
    BarredOut,
    BarredPage,
    LinkDisposition,
    PersonOut,
    PersonPage,
    PersonPatch,
)
from refract.cli.common import InvalidValue, load_command_settings, read_secret, run_on_data
from refract.cli.options import AsJson, DataDir
from refract.cli.output import print_json
from refract.cli.tables import make_console, make_safe_text, make_table
from refract.core.db.errors import is_permission_denied
from refract.core.db.session import WriteSession
from refract.core.errors import ConfigurationError
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity import tombstones
from refract.identity.errors import AmbiguousEmail, UserNotFound
from refract.identity.models import AccountTombstone, User, UserStatus
from refract.identity.users import ensure_owner, fold_email
from refract.migrations.grants import DATABASE_ACCOUNTS, DatabaseAccount, DatabaseGrants
from refract.migrations.tables import (
    list_ingest_tables,
    list_limit_tables,
    list_redirect_tables,
    metadata,
)
from refract.registry import list_personal_data_hooks

app = typer.Typer(help="Manage accounts and database users.", no_args_is_help=True)
PAGE_SIZE = 200
UserArgument = Annotated[
    str, typer.Argument(help="Email address or id of the account.", metavar="ACCOUNT")
]


@app.command("list")
def list_users(
    search: Annotated[
        str | None, typer.Argument(help="Part of an email address. Default: all accounts.")
    ] = None,
    *,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Maximum number. Default: all.")
    ] = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List accounts, newest first."""
    people = run_on_data(load_command_settings(data_dir), lambda rt: _load_users(rt, search, limit))
    if as_json:
        print_json(
            PersonPage(
                items=[PersonOut.model_validate(person) for person in people], next_cursor=None
            )
        )
        return
    table = make_table("id", "email", "name", "role", "plan", "status", "last sync")
    for person in people:
        values = (person.email, person.public_name, person.role, person.plan, person.status)
        table.add_row(
            str(person.id),
            *(make_safe_text(value) for value in values),
            f"{person.last_sync_at:%Y-%m-%d %H:%M}",
        )
    make_console().print(table)


async def _load_users(rt: Runtime, search: str | None, limit: int | None) -> list[User]:
    """Read accounts page by page, up to `limit`."""
    found: list[User] = []
    cursors, cursor = CursorCodec(rt.secret), None
    async with rt.db.read() as session:
        while limit is None or len(found) < limit:
            size = PAGE_SIZE if limit is None else min(PAGE_SIZE, limit - len(found))
            page = await queries.load_people_page(
                session, cursors, PeopleFilter(q=search), limit=size, cursor=cursor
            )
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
    return found


@app.command("promote")
def promote(account: UserArgument, data_dir: DataDir = None) -> None:
    """Make a user an administrator. They must have signed in once."""
    _change_user(data_dir, account, PersonPatch(role="admin"), "is now an administrator")


@app.command("demote")
def demote(account: UserArgument, data_dir: DataDir = None) -> None:
    """Remove admin access. Users in the setting `admins` get it back when they next sign in."""
    _change_user(data_dir, account, PersonPatch(role="user"), "is no longer an administrator")


@app.command("suspend")
def suspend(
    account: UserArgument,
    keep_links: Annotated[
        bool, typer.Option("--keep-links", help="Keep their links and lists working.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Suspend an account: sign it out everywhere and refuse its keys and tokens, immediately.

    Links it is the primary owner of, and its lists, are on hold: visitors get a 410 page until you
    activate the account. Nothing is deleted. With --keep-links they keep working.
    """
    done = (
        "is suspended; links and lists keep working"
        if keep_links
        else "is suspended; links and lists are on hold"
    )
    _change_user(data_dir, account, PersonPatch(status="suspended", keep_links=keep_links), done)


@app.command("activate")
@app.command("restore", hidden=True)
def activate(account: UserArgument, data_dir: DataDir = None) -> None:
    """Activate a suspended account. Its links and lists work again."""
    _change_user(data_dir, account, PersonPatch(status="active"), "is active again")


@app.command("delete")
def delete(
    account: UserArgument,
    heir: Annotated[
        str | None,
        typer.Option(
            "--reassign-to",
            help="New owner of their lists, and of links that only they own: a user, or the handle"
            " of a team. Default: delete them.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask for confirmation.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Delete an account immediately. This can't be undone."""
    if not yes:
        typer.confirm(f"Delete the account {account}? This can't be undone.", abort=True)

    async def run(rt: Runtime) -> None:
        async with rt.db.write() as session:
            by, _ = await ensure_owner(session, rt)
            person = await _find_user(session, account)
            links = LinkDisposition.REASSIGN if heir else LinkDisposition.DELETE
            await service.delete_person(
                session, rt, by, person.id, list_personal_data_hooks(), links=links, heir=heir
            )

    run_on_data(load_command_settings(data_dir), run)
    typer.echo("Deleted the account.")


@app.command("barred")
def list_barred(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List deleted accounts whose owners can't sign up again, newest first, at most 200."""

    async def run(rt: Runtime) -> list[AccountTombstone]:
        async with rt.db.read() as session:
            return list(
                (
                    await tombstones.list_tombstones(
                        session, CursorCodec(rt.secret), limit=200, cursor=None
                    )
                ).items
            )

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        items = [BarredOut.from_tombstone(row) for row in found]
        print_json(BarredPage(items=items, next_cursor=None))
        return
    table = make_table("reference", "account", "deleted")
    for row in found:
        table.add_row(
            tombstones.get_reference(row), str(row.user_id), f"{row.created_at:%Y-%m-%d %H:%M}"
        )
    make_console().print(table)


@app.command("allow")
def allow(
    reference: Annotated[
        str, typer.Argument(help="Reference, as listed and as shown to the person.")
    ],
    data_dir: DataDir = None,
) -> None:
    """Let the owner of a deleted account sign up again."""

    async def run(rt: Runtime) -> None:
        async with rt.db.write() as session:
            by, _ = await ensure_owner(session, rt)
            found = await tombstones.find_by_reference(session, reference)
            await service.allow_barred(session, rt, by, found.id)

    run_on_data(load_command_settings(data_dir), run)
    typer.echo("They can sign up again.")


@app.command("grants")
def grants(
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix", help="The users are named PREFIX_web, PREFIX_redirect and PREFIX_ingest."
        ),
    ] = "refract",
    host: Annotated[
        str, typer.Option("--host", help="MariaDB: the host that the users connect from.")
    ] = "%",
    password: Annotated[
        list[str] | None,
        typer.Option(
            "--password",
            help=(
                "For web, redirect or ingest: USER=@FILE, USER=env:NAME, USER to be prompted, or"
                " USER=PASSWORD (visible to others)."
            ),
        ),
    ] = None,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Run the statements as the user of REFRACT_DATABASE_URL."),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Print or run the SQL that creates least-privilege database users.

    They are web, redirect (reads, and counts redirects of links with a limit) and ingest.
    """
    settings = load_command_settings(data_dir)
    if settings.dialect == "sqlite":
        raise InvalidValue(problem="SQLite has no users. Access is controlled by file permissions.")
    passwords = _parse_passwords(password or [])

    async def run(rt: Runtime) -> list[str]:
        plan = DatabaseGrants(
            server="postgresql" if rt.db.dialect == "postgresql" else "mysql",
            database=rt.db.url.database or "",
            tables=sorted(metadata.tables),
            redirect_tables=list_redirect_tables(),
            limit_tables=list_limit_tables(),
            ingest_tables=list_ingest_tables(),
            prefix=prefix,
            host=host,
        )
        try:
            statements = list(
                plan.iter_statements(passwords) if apply else plan.iter_script(passwords)
            )
        except ValueError as exc:
            raise InvalidValue(problem=f"Invalid name or password: {exc}.") from exc
        if apply:
            await _run_grants(rt, statements)
        return statements

    statements = run_on_data(settings, run)
    if apply:
        typer.echo(
            f"Created {', '.join(f'{prefix}_{account}' for account in DATABASE_ACCOUNTS)}. Run this"
            " again after an upgrade."
        )
    else:
        typer.echo("\n".join(f"{statement};" for statement in statements))


async def _run_grants(rt: Runtime, statements: list[str]) -> None:
    try:
        async with rt.db.engine.begin() as connection:
            for statement in statements:
                await connection.execute(text(statement.replace(":", "\\:")))
    except DBAPIError as exc:
        if not is_permission_denied(exc):
            raise
        need = (
            "CREATEROLE, and must own the tables"
            if rt.db.dialect == "postgresql"
            else "CREATE USER and GRANT OPTION"
        )
        raise ConfigurationError(
            problem=(
                f"The database user {rt.db.url.username} can't create users or grant privileges: it"
                f" needs {need}."
            ),
            remedy=(
                "Run this as a user that can, or omit --apply and let an administrator run the"
                " printed statements."
            ),
        ) from exc


def _parse_passwords(given: list[str]) -> dict[DatabaseAccount, str]:
    found: dict[DatabaseAccount, str] = {}
    for option in given:
        name, has_value, value = option.partition("=")
        account = next((known for known in DATABASE_ACCOUNTS if known == name), None)
        if account is None or (has_value and not value):
            raise InvalidValue(
                problem=("Use --password redirect=@FILE, for web, redirect or ingest.")
            )
        found[account] = (
            read_secret(value)
            if has_value
            else typer.prompt(f"Password for {name}", hide_input=True, err=True)
        )
    return found


def _change_user(data_dir: DataDir, account: str, changes: PersonPatch, done: str) -> None:
    async def run(rt: Runtime) -> User:
        async with rt.db.write() as session:
            by, _ = await ensure_owner(session, rt)
            return await service.change_person(
                session, rt, by, (await _find_user(session, account)).id, changes
            )

    person = run_on_data(load_command_settings(data_dir), run)
    typer.echo(f"{person.public_name} {done}.")


async def _find_user(session: WriteSession, account: str) -> User:
    """Return the account with this id or email; raise if the email has several accounts.

    The email need not be verified: an operator of the server is asking.
    """
    if account.isascii() and account.isdigit():
        return await queries.get_user(session, int(account))
    query = queries.select_by_email(fold_email(account))
    found = [user for user in await session.scalars(query) if user.status != UserStatus.DELETED]
    if not found:
        raise UserNotFound(email=account)
    if len(found) > 1:
        raise AmbiguousEmail(email=account)
    return found[0]
