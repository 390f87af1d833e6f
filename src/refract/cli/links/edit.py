"""`refract links`: edit, revert, names, owners."""

from typing import Annotated, Any

import typer

from refract.cli.common import (
    InvalidValue,
    load_command_settings,
    parse_start,
    parse_time,
    run_on_data,
    validate_options,
)
from refract.cli.links.changes import change_link, print_change
from refract.cli.links.context import LinkArgument, LinkCommandContext, load_context
from refract.cli.options import (
    AsJson,
    AskPassword,
    AsUser,
    CardDescription,
    CardImage,
    CardTitle,
    DataDir,
    LinkStart,
    UrlAfter,
    UrlAtLimit,
    UrlBefore,
    UtmTemplateName,
    ask_password,
    gather_card,
)
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.domains.hosts import to_other_host
from refract.identity.users import fold_email
from refract.links import service
from refract.links.campaigns.queries import find_template
from refract.links.campaigns.service import apply_template_to_change
from refract.links.enums import Visibility
from refract.links.errors import OwnerNotFound
from refract.links.preview_cards import parse_card
from refract.links.queries import get_version, list_owners
from refract.links.schemas import LinkOut, LinkPatch
from refract.links.service import LockedLink
from refract.names.service import namespace_of


def edit(
    which: LinkArgument,
    *,
    destination: Annotated[
        str | None, typer.Option("--destination", help="New destination URL.", metavar="URL")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help='"" removes it.')] = None,
    notes: Annotated[str | None, typer.Option("--notes", help='"" removes them.')] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help='Replaces all tags. Repeat for several; "" removes them.'),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", help="30d, 2026-12-31, a time, or never.", metavar="WHEN"),
    ] = None,
    after_url: UrlAfter = None,
    starts: LinkStart = None,
    before_url: UrlBefore = None,
    card_title: CardTitle = None,
    card_description: CardDescription = None,
    card_image: CardImage = None,
    click_limit: Annotated[
        int | None,
        typer.Option(
            "--click-limit",
            help="How many times it redirects; 0 removes the limit.",
            metavar="NUMBER",
        ),
    ] = None,
    limit_url: UrlAtLimit = None,
    password: AskPassword = False,
    utm: UtmTemplateName = None,
    status: Annotated[
        int | None, typer.Option("--status", help="Redirect status: 301, 302, 307 or 308.")
    ] = None,
    visibility: Annotated[
        Visibility | None, typer.Option("--visibility", help="Who can see and follow it.")
    ] = None,
    forward_query: Annotated[
        bool | None,
        typer.Option(
            "--forward-query/--no-forward-query",
            help="Forward query parameters to the destination.",
        ),
    ] = None,
    noindex: Annotated[
        bool | None,
        typer.Option("--noindex/--index", help="Ask search engines not to list the short URL."),
    ] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Update a link. Omitted fields are unchanged."""
    settings = load_command_settings(data_dir)
    given: dict[str, Any] = {
        "destination": destination,
        "title": title,
        "notes": notes,
        "tags": None if tag is None else [name for name in tag if name],
        "redirect_status": status,
        "visibility": visibility,
        "forward_query": forward_query,
        "noindex": noindex,
        "password": ask_password() if password else None,
        "preview_card": gather_card(card_title, card_description, card_image),
    }
    given = {name: value for name, value in given.items() if value is not None}
    clearable = {
        "expired_destination": after_url,
        "before_destination": before_url,
        "click_limit": click_limit,
        "limit_destination": limit_url,
    }
    given |= {name: value or None for name, value in clearable.items() if value is not None}

    print_change(
        run_on_data(settings, lambda rt: _edit_link(rt, which, given, starts, expires, utm, user)),
        "Updated {link}.",
        as_json=as_json,
    )


async def _edit_link(
    rt: Runtime,
    which: str,
    given: dict[str, Any],
    starts: str | None,
    expires: str | None,
    utm: str | None,
    user: str | None,
) -> LinkOut:
    if starts is not None:
        given["starts_at"] = None if starts == "never" else parse_start(starts, rt.clock.now())
    if expires is not None:
        given["expires_at"] = None if expires == "never" else parse_time(expires, rt.clock.now())
    if not given and utm is None:
        raise InvalidValue(
            problem="Nothing to change. See refract links edit --help for the options."
        )
    context = await load_context(rt, user)
    async with rt.db.read() as session:
        link = await context.find_link(session, which)
        if utm is not None:
            found = await find_template(session, context.caller.user_id, utm)
            given["utm_template"] = found.template.id
    if "preview_card" in given:  # parts that are left out stay
        card = parse_card(link.preview_card)
        given["preview_card"] = (card.to_json() if card else {}) | given["preview_card"]
    patch = validate_options(LinkPatch, **given)
    patch, versions = await apply_template_to_change(rt, context.caller, link.id, patch)
    checked = await service.check_changes(rt, patch)
    async with rt.db.write() as write_session:
        locked = await service.edit_link(
            *(write_session, namespace_of(context.rt), context.caller, link.id, patch, checked),
            version=versions,
        )
        return await context.to_schema(write_session, locked.link)


def revert(
    which: LinkArgument,
    version: Annotated[
        int, typer.Argument(help="Version to restore, as listed by `refract links history`.")
    ],
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Restore an earlier version of a link. Names and owners stay."""

    async def run(rt: Runtime) -> LinkOut:
        context = await load_context(rt, user)
        async with rt.db.read() as session:
            link = await context.find_link(session, which)
            snapshot = (await get_version(session, link.id, version)).snapshot
        checked = await service.check_version(rt, snapshot)
        async with rt.db.write() as write_session:
            locked = await service.revert_link(
                write_session, namespace_of(context.rt), context.caller, link.id, version, checked
            )
            return await context.to_schema(write_session, locked.link)

    print_change(
        run_on_data(load_command_settings(data_dir), run),
        f"Restored version {version} of {{link}}.",
        as_json=as_json,
    )


# `refract links names`.

names_app = typer.Typer(help="Add and remove the names of a link.", no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(help="1 to 50 letters, digits, - and _.")]
NameDomain = Annotated[
    str | None,
    typer.Option(
        "--domain", help="Host of the name's domain. Default: the base URL's.", metavar="HOST"
    ),
]


@names_app.command("add")
def add_name(
    which: LinkArgument,
    name: NameArgument,
    domain: NameDomain = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Add a name to a link."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        host = to_other_host(context.rt.settings.public_url, domain)
        return await service.add_name(
            session, namespace_of(context.rt), context.caller, link_id, name, host=host
        )

    change_link(
        which,
        act,
        f"Added the name {_escape_braces(name)} to {{link}}.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


@names_app.command("release")
def release_name(
    which: LinkArgument,
    name: NameArgument,
    domain: NameDomain = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Remove a name from a link. Anyone can use it then."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        host = to_other_host(context.rt.settings.public_url, domain)
        return await service.release_name(
            session, namespace_of(context.rt), context.caller, link_id, name, host=host
        )

    change_link(
        which,
        act,
        f"Removed the name {_escape_braces(name)}. It is available now.",
        user=user,
        as_json=as_json,
        data_dir=data_dir,
    )


def _escape_braces(name: str) -> str:
    return name.replace("{", "{{").replace("}", "}}")


# `refract links owners`.

owners_app = typer.Typer(help="Add, remove and transfer owners of a link.", no_args_is_help=True)
OwnerEmailArgument = Annotated[str, typer.Argument(help="Email of the account.", metavar="EMAIL")]


@owners_app.command("add")
def add_owner(
    which: LinkArgument,
    email: OwnerEmailArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Add a co-owner immediately, without an invitation to accept."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.add_owner(
            session, context.caller, link_id, email, context.rt.clock.now()
        )

    change_link(
        which, act, "Added a co-owner to {link}.", user=user, as_json=as_json, data_dir=data_dir
    )


@owners_app.command("remove")
def remove_owner(
    which: LinkArgument,
    email: OwnerEmailArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Remove a co-owner from a link."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        owners = await list_owners(session, link_id)
        found = next(
            (owner.user_id for owner, person in owners if person.email_folded == fold_email(email)),
            None,
        )
        if found is None:
            raise OwnerNotFound
        return await service.remove_owner(
            session, context.caller, link_id, found, context.rt.clock.now()
        )

    change_link(
        which, act, "Removed a co-owner from {link}.", user=user, as_json=as_json, data_dir=data_dir
    )


@owners_app.command("transfer")
def transfer_ownership(
    which: LinkArgument,
    email: OwnerEmailArgument,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Transfer a link to another owner immediately. The previous owner stays as co-owner."""

    async def act(session: WriteSession, context: LinkCommandContext, link_id: int) -> LockedLink:
        return await service.transfer_link(
            session, context.caller, link_id, email, context.rt.clock.now()
        )

    change_link(which, act, "Transferred {link}.", user=user, as_json=as_json, data_dir=data_dir)
