"""Links on a terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from refract.cli.tables import format_time, make_console, make_safe_text
from refract.core.lookalikes import to_ascii_url
from refract.links.schemas import LinkOut
from refract.names.grammar import join_name

_STATUS_COLORS = {
    "active": "green",
    "on_hold": "yellow",
    "disabled": "yellow",
    "expired": "yellow",
    "deleted": "red",
}


def print_links(links: Sequence[LinkOut], default_host: str) -> None:
    """Print a table of links. Those of other domains than the default one are shown with it."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    labels = [
        join_name(link.domain if link.domain != default_host else None, [*link.names, link.code][0])
        for link in links
    ]
    longest = max(map(len, labels), default=0)  # never cut off: other commands want it
    table.add_column("link", no_wrap=True, min_width=longest)
    for heading in ("destination", "title", "status"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    table.add_column("clicks", justify="right", no_wrap=True)
    table.add_column("created", no_wrap=True)
    for label, link in zip(labels, links, strict=True):
        table.add_row(
            make_safe_text(label, style="bold"),
            make_safe_text(to_ascii_url(link.destination)),
            make_safe_text(link.title),
            Text(link.status, style=_STATUS_COLORS[link.status]),
            "–" if link.total_clicks is None else f"{link.total_clicks:,}",
            f"{link.created_at:%Y-%m-%d}",
        )
    make_console().print(table)


def _list_owners(link: LinkOut) -> dict[str, list[str]]:
    """Return the people and the teams that own a link, by heading."""
    owners = [
        f"{owner.email or owner.name}{'' if owner.primary else ' (co-owner)'}"
        for owner in link.owners
    ]
    teams = [f"{team.name}{'' if team.primary else ' (co-owner)'}" for team in link.teams]
    return {heading: names for heading, names in (("owners", owners), ("teams", teams)) if names}


def _add_schedule(table: Table, link: LinkOut) -> None:
    if link.starts_at:
        table.add_row("starts", format_time(link.starts_at))
    table.add_row("expires", format_time(link.expires_at) if link.expires_at else "never")
    if link.click_limit is not None:
        table.add_row("click limit", f"{link.clicks_left:,} of {link.click_limit:,} left")
    for heading, url in (
        ("before it starts", link.before_destination),
        ("after it expired", link.expired_destination),
        ("at its click limit", link.limit_destination),
    ):
        if url:
            table.add_row(heading, make_safe_text(to_ascii_url(url), 2048))


def _list_card(link: LinkOut) -> dict[str, str | None]:
    """Return the parts of the preview card, by heading."""
    card = link.preview_card
    if card is None:
        return {}
    image = to_ascii_url(card.image_url) if card.image_url else None
    return {"card title": card.title, "card text": card.description, "card picture": image}


def _list_names(link: LinkOut) -> list[str]:
    """Return the names of a link, those on other domains than its own with their host."""
    elsewhere = (address for address in link.addresses if address.domain != link.domain)
    return [*link.names, *(join_name(address.domain, address.name) for address in elsewhere)]


def print_link(link: LinkOut) -> None:
    """Print everything about a link."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rows = {
        "short URL": link.short_url,
        "destination": to_ascii_url(link.destination),
        "title": link.title,
        "notes": link.notes,
        "names": ", ".join(_list_names(link)),
        "tags": ", ".join(link.tags),
        **_list_card(link),
    }
    for heading, text in rows.items():
        if text:
            table.add_row(heading, make_safe_text(text, 2048))
    table.add_row("status", Text(link.status, style=_STATUS_COLORS[link.status]))
    _add_schedule(table, link)
    table.add_row("visibility", link.visibility)
    table.add_row(
        "redirect",
        f"{link.redirect_status}{', forwards the query' if link.forward_query else ''}"
        f"{', noindex' if link.noindex else ''}",
    )
    table.add_row(
        "clicks",
        (
            "–"
            if link.total_clicks is None
            else f"{link.total_clicks:,} (bots, excluded: {link.bot_clicks:,})"
        ),
    )
    table.add_row("created", format_time(link.created_at))
    table.add_row("updated", f"{format_time(link.updated_at)} (version {link.version})")
    for heading, names in _list_owners(link).items():
        table.add_row(heading, make_safe_text(", ".join(names), 2048))
    table.add_row("id · code", f"{link.id} · {link.code}")
    if link.flagged:
        table.add_row("flagged", str(link.flag_reason))
    make_console().print(table)
