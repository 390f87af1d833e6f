"""`refract keys`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from refract.cli.common import acting, checked, command_settings, on_data
from refract.cli.options import DataDir
from refract.core.runtime import Runtime
from refract.identity import audit, keys
from refract.identity.errors import KeyNotFound
from refract.identity.models import ApiKey, Scope
from refract.identity.schemas import KeyCreate

app = typer.Typer(help="API keys: create, list, revoke.", no_args_is_help=True)
Person = Annotated[str | None, typer.Option("--user", help="Whose key. Left out: the owner's.", metavar="EMAIL")]


@app.command("create")
def create(
    name: Annotated[str, typer.Option("--name", help="What will use it, 1 to 100 characters.")],
    user: Person = None,
    scope: Annotated[
        list[Scope] | None, typer.Option("--scope", help="read, write or admin; may be given several times. Left out: read and write.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Make a key and print it, and only it, on standard output. It is shown this once."""
    settings = command_settings(data_dir)
    new = checked(KeyCreate, name=name, **({"scopes": scope} if scope else {}))

    async def run(rt: Runtime) -> str:
        person = await acting(rt, user)
        async with rt.db.write() as session:
            row, clear = await keys.create_key(session, rt, person, new.name, new.scopes)
            await audit.note(session, rt, "key.created", actor=person, target=row.key_prefix, detail="command line")
        return clear

    typer.echo(on_data(settings, run))


@app.command("list")
def list_keys(user: Person = None, data_dir: DataDir = None) -> None:
    """Show the keys of a person."""
    settings = command_settings(data_dir)

    async def run(rt: Runtime) -> list[ApiKey]:
        person = await acting(rt, user)
        async with rt.db.read() as session:
            return await keys.keys_of(session, person, revoked_too=True)

    found = on_data(settings, run)
    if not found:
        typer.echo("No keys yet. Make one with: refract keys create --name NAME")
        return
    table = Table("id", "name", "key", "scopes", "status", "created", "last used", "requests")
    for one in found:
        last = f"{one.last_used_at:%Y-%m-%d %H:%M}" if one.last_used_at else "never"
        table.add_row(
            str(one.id),
            one.name,
            f"{one.key_prefix}…",
            " ".join(one.scopes),
            one.status,
            f"{one.created_at:%Y-%m-%d %H:%M}",
            last,
            str(one.usage_count),
        )
    Console().print(table)


@app.command("revoke")
def revoke(
    which: Annotated[str, typer.Argument(help="The id, or the beginning of the key as the list shows it.")],
    user: Person = None,
    data_dir: DataDir = None,
) -> None:
    """Revoke a key: every process refuses it from now on."""
    settings = command_settings(data_dir)

    async def run(rt: Runtime) -> ApiKey:
        person = await acting(rt, user)
        async with rt.db.write() as session:
            matching = [
                one for one in await keys.keys_of(session, person) if str(one.id) == which or one.key_prefix == which.rstrip("…")[:16]
            ]
            if len(matching) != 1:
                raise KeyNotFound
            row = await keys.revoke_key(session, person, matching[0].id)
            await audit.note(session, rt, "key.revoked", actor=person, target=row.key_prefix, detail="command line")
        return row

    typer.echo(f"Revoked {on_data(settings, run).name}.")
