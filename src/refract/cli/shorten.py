"""`refract shorten`."""

from typing import Annotated, Any

import typer

from refract.cli.common import (
    get_acting_user,
    load_command_settings,
    parse_start,
    parse_time,
    run_on_data,
    validate_options,
)
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
from refract.cli.output import print_json
from refract.core.runtime import Runtime
from refract.links.campaigns.queries import find_template
from refract.links.campaigns.service import apply_template
from refract.links.enums import Visibility
from refract.links.schemas import LinkCreate, LinkOut
from refract.links.service import check_link, create_link


def shorten(
    url: Annotated[str, typer.Argument(help="Destination URL.", metavar="URL")],
    *,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="Custom name, such as roadmap. Repeat for several."),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain", help="Host of the domain. Default: the base URL's.", metavar="HOST"
        ),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Title.")] = None,
    notes: Annotated[str | None, typer.Option("--notes", help="Private notes.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Tag. Repeat for several.")] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", help="30d, 12h, 2026-12-31 or a time.", metavar="WHEN"),
    ] = None,
    after_url: UrlAfter = None,
    starts: LinkStart = None,
    before_url: UrlBefore = None,
    card_title: CardTitle = None,
    card_description: CardDescription = None,
    card_image: CardImage = None,
    click_limit: Annotated[
        int | None,
        typer.Option("--click-limit", help="How many times it redirects.", metavar="NUMBER"),
    ] = None,
    limit_url: UrlAtLimit = None,
    password: AskPassword = False,
    utm: UtmTemplateName = None,
    status: Annotated[
        int | None,
        typer.Option("--status", help="Redirect status: 301, 302, 307 or 308.", show_default="302"),
    ] = None,
    visibility: Annotated[
        Visibility | None,
        typer.Option("--visibility", help="Who can see and follow it.", show_default="unlisted"),
    ] = None,
    team: Annotated[
        str | None, typer.Option("--team", help="Handle of a team of yours that owns the link.")
    ] = None,
    noindex: Annotated[
        bool | None,
        typer.Option("--noindex", help="Ask search engines not to list the short URL."),
    ] = None,
    find_if_exists: Annotated[
        bool,
        typer.Option("--find-if-exists", help="Return your existing link to this URL, if any."),
    ] = False,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Create a short link and print only its URL."""
    settings = load_command_settings(data_dir)
    given: dict[str, Any] = {
        "destination": url,
        "names": name or [],
        "title": title,
        "notes": notes,
        "find_if_exists": find_if_exists,
    }
    # Left out unless given: an existing link matches if it has what was given, and no more.
    optional = {
        "tags": tag,
        "redirect_status": status,
        "visibility": visibility,
        "domain": domain,
        "noindex": noindex,
        "team": team,
        "expired_destination": after_url,
        "before_destination": before_url,
        "click_limit": click_limit,
        "limit_destination": limit_url,
        "password": ask_password() if password else None,
        "preview_card": gather_card(card_title, card_description, card_image),
    }
    given |= {field: value for field, value in optional.items() if value is not None}

    link = run_on_data(settings, lambda rt: _shorten(rt, given, starts, expires, utm, user))
    if as_json:
        print_json(link)
    else:
        typer.echo(link.short_url)


async def _shorten(
    rt: Runtime,
    given: dict[str, Any],
    starts: str | None,
    expires: str | None,
    utm: str | None,
    user: str | None,
) -> LinkOut:
    if starts is not None:
        given["starts_at"] = parse_start(starts, rt.clock.now())
    if expires is not None:
        given["expires_at"] = parse_time(expires, rt.clock.now())
    owner = await get_acting_user(rt, user)
    if utm is not None:
        async with rt.db.read() as reading:
            given["utm_template"] = (await find_template(reading, owner.id, utm)).template.id
    new = await apply_template(rt, owner.id, validate_options(LinkCreate, **given))
    link = await check_link(rt, new)
    async with rt.db.write() as session:
        created = await create_link(session, rt, owner, link, charged=False)
    return created.card.to_schema(rt.settings.public_url, rt.clock.now())
