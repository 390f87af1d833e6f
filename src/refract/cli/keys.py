"""`refract keys`."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from refract.cli.common import get_acting_user, load_command_settings, run_on_data, validate_options
from refract.cli.options import AsJson, DataDir
from refract.cli.output import print_json_list
from refract.cli.tables import make_console, make_table
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.identity import keys
from refract.identity.errors import KeyNotFound
from refract.identity.models import ApiKey, KeyStatus, Scope, User
from refract.identity.schemas import KeyCreate, KeyOut, check_key_expiry

app = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)
KeyOwnerOption = Annotated[
    str | None,
    typer.Option("--user", help="User the key belongs to. Default: the owner.", metavar="EMAIL"),
]
KeyExpiryOption = Annotated[
    str | None,
    typer.Option("--expires", help="Days from now, such as 90, or a date. Default: never."),
]


@app.command("create")
def create(
    name: Annotated[
        str, typer.Option("--name", help="A name to recognize it by, 1 to 100 characters.")
    ],
    user: KeyOwnerOption = None,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            "--scope",
            help="read, write, admin or account. Repeat for several. Default: read and write.",
        ),
    ] = None,
    expires: KeyExpiryOption = None,
    data_dir: DataDir = None,
) -> None:
    """Create a key and print only the key. It is shown once."""
    settings = load_command_settings(data_dir)
    new = validate_options(KeyCreate, name=name, **({"scopes": scope} if scope else {}))

    async def run(rt: Runtime) -> str:
        ends = None if expires is None else parse_expiry(expires, rt.clock.now())
        check_key_expiry(ends, rt.clock.now())
        person = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            _, clear = await keys.create_audited_key(
                session,
                rt,
                person,
                new.model_copy(update={"expires_at": ends}),
                detail="command line",
            )
        return clear

    typer.echo(run_on_data(settings, run))


@app.command("list")
def list_keys(
    user: KeyOwnerOption = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """List the keys of a user."""
    settings = load_command_settings(data_dir)

    async def run(rt: Runtime) -> tuple[list[ApiKey], datetime]:
        person = await get_acting_user(rt, user)
        async with rt.db.read() as session:
            return await keys.list_keys(session, person, include_revoked=True), rt.clock.now()

    found, now = run_on_data(settings, run, makes_ids=False)
    if as_json:
        print_json_list(KeyOut.from_key(key, now) for key in found)
    elif found:
        print_keys(found, now)
    else:
        typer.echo("No keys yet. Create one with: refract keys create --name NAME")


def print_keys(found: Iterable[ApiKey], now: datetime) -> None:
    table = make_table("id", "name", "key", "scopes", "status", "created", "last used", "requests")
    for key in found:
        table.add_row(
            f"{key.id}\ncreated by {key.parent_id}" if key.parent_id else str(key.id),
            key.name,
            f"{key.key_prefix}…",
            " ".join(key.scopes),
            _describe_status(key, now),
            f"{key.created_at:%Y-%m-%d %H:%M}",
            (
                f"{key.last_used_at:%Y-%m-%d %H:%M}\n{key.last_used_network or ''}".rstrip()
                if key.last_used_at
                else "never"
            ),
            str(key.usage_count),
        )
    make_console().print(table)


@app.command("revoke")
def revoke(
    which: Annotated[
        str, typer.Argument(help="Its id, or its first characters as listed.", metavar="KEY")
    ],
    user: KeyOwnerOption = None,
    data_dir: DataDir = None,
) -> None:
    """Revoke a key and the keys created with it. They stop working immediately."""
    settings = load_command_settings(data_dir)

    async def run(rt: Runtime) -> list[ApiKey]:
        person = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            key = await _find_key(session, person, which)
            return await keys.revoke_audited_key(session, rt, person, key.id, detail="command line")

    typer.echo(f"Revoked {', '.join(row.name for row in run_on_data(settings, run))}.")


@app.command("signature")
def show_signature(
    which: Annotated[
        str, typer.Argument(help="Its id, or its first characters as listed.", metavar="KEY")
    ],
    user: KeyOwnerOption = None,
    data_dir: DataDir = None,
) -> None:
    """Print the signature token of a key, which clients of YOURLS ask for."""

    async def run(rt: Runtime) -> str:
        person = await get_acting_user(rt, user)
        async with rt.db.read() as session:
            key = await _find_key(session, person, which)
        return keys.derive_signature_token(rt.secret, key.id)

    typer.echo(run_on_data(load_command_settings(data_dir), run))


async def _find_key(session: ReadSession, person: User, which: str) -> ApiKey:
    """Return a user's key by its id or its first characters. Raises `KeyNotFound`."""
    matching = [
        key
        for key in await keys.list_keys(session, person)
        if str(key.id) == which or key.key_prefix == which.rstrip("…")[:16]
    ]
    if len(matching) != 1:
        raise KeyNotFound
    return matching[0]


def parse_expiry(text: str, now: datetime) -> datetime:
    """Parse a number of days from now, a date or a time. The default time zone is UTC."""
    try:
        if text.isdecimal():
            return now + timedelta(days=int(text))
        ends = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as exc:
        raise typer.BadParameter(
            "use a number of days, such as 90, or a date, such as 2027-01-31",
            param_hint="--expires",
        ) from exc
    return ends if ends.tzinfo is not None else ends.replace(tzinfo=UTC)


def _describe_status(key: ApiKey, now: datetime) -> str:
    status = key.status_at(now)
    if status == KeyStatus.REVOKED or key.expires_at is None:
        return status
    word = (
        "expires soon"
        if keys.is_expiring_soon(key, now)
        else "expires"
        if status == KeyStatus.ACTIVE
        else "expired"
    )
    return f"{word} {key.expires_at:%Y-%m-%d}"
