"""Actions of the omnibox: commands, and what can be done with a link."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from refract.core.errors import RefractError
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.home.omnibox_parser import OmniboxCommand, matches_prefixes
from refract.identity.access import AccessRight
from refract.identity.authentication import Caller
from refract.links import queries
from refract.links.dependencies import to_link_caller
from refract.links.enums import LinkState
from refract.links.models import Link
from refract.links.queries import LinkFilter
from refract.names.grammar import build_short_url, format_name
from refract.web.i18n import gettext

_LINK_PAGE = re.compile(r"/app/links/(\d{1,19})")


@dataclass(frozen=True, slots=True)
class OmniboxOption:
    """A suggestion below the omnibox. The one that submits the form has no `href`."""

    label: str
    icon: str
    href: str | None = None
    note: str = ""
    group: str = ""
    post: str | None = None
    """Path that the input is posted to instead, as `text`."""
    script: tuple[str, str] | None = None
    """A data attribute and its value, which a script handles."""


@dataclass(frozen=True, slots=True)
class OmniboxContext:
    """Where the command bar is used: the areas that the caller has, and the page that is open."""

    areas: Sequence[str]
    path: str = ""


def build_save_option(label: str) -> OmniboxOption:
    return OmniboxOption(label, "bookmark-plus", post="/app/items", group=gettext("Actions"))


def build_command_option(command: OmniboxCommand, *, group: bool = True) -> OmniboxOption:
    heading = gettext("Actions") if command.is_action else gettext("Go to")
    return OmniboxOption(
        str(command.label),
        command.icon,
        command.href,
        group=heading if group else "",
        post=command.post,
        script=command.script,
    )


def build_object_actions(
    rt: Runtime, exact: Sequence[tuple[str, Link | None]]
) -> list[OmniboxOption]:
    """Return what else can be done with the link whose name was typed."""
    options = []
    for name, link in exact[:1]:
        url = build_short_url(rt.settings.public_url, name)
        if link is not None:
            label = gettext("Details of /{name}", name=name)
            href = f"/app/links/{link.id}"
            options.append(OmniboxOption(label, "chart-column", href, group=gettext("Actions")))
        label = gettext("Copy {url}", url=url.split("://", 1)[-1])
        options.append(OmniboxOption(label, "copy", group=gettext("Actions"), script=("copy", url)))
    return options


async def build_page_actions(
    rt: Runtime, actor: Caller, context: OmniboxContext, typed: str = ""
) -> list[OmniboxOption]:
    """Return what can be done with the link whose page is open, by the words that are typed."""
    match = _LINK_PAGE.fullmatch(context.path)
    if match is None:
        return []
    async with rt.db.read() as session:
        try:
            link, access = await queries.view_link(session, to_link_caller(actor), int(match[1]))
        except RefractError:
            return []  # gone meanwhile, or no longer shared with the caller
        card = await queries.load_card(session, link)
    base, group = f"/app/links/{link.id}", gettext("Actions")
    url = build_short_url(rt.settings.public_url, card.text)
    options = [
        OmniboxOption(gettext("Copy this link"), "copy", group=group, script=("copy", url)),
    ]
    if access.allows(AccessRight.EDIT):
        options.insert(
            0, OmniboxOption(gettext("Edit this link"), "square-pen", f"{base}/edit", group=group)
        )
        state = link.state_at(rt.clock.now())
        if state == LinkState.ACTIVE:
            label = gettext("Disable this link")
            options.append(OmniboxOption(label, "ban", post=f"{base}/disable", group=group))
        elif state == LinkState.DISABLED:
            label = gettext("Enable this link")
            options.append(OmniboxOption(label, "circle-check", post=f"{base}/enable", group=group))
    prefixes = typed.casefold().split()
    return [option for option in options if matches_prefixes(option.label.casefold(), prefixes)]


async def build_copy_option(
    rt: Runtime, actor: Caller, context: OmniboxContext, typed: str = ""
) -> list[OmniboxOption]:
    """Return the action that copies the newest short link, if it is meant by the typed words."""
    label = gettext("Copy last short link")
    if "links" not in context.areas or not matches_prefixes(
        label.casefold(), typed.casefold().split()
    ):
        return []
    async with rt.db.read() as session:
        page = await queries.load_links_page(
            session,
            CursorCodec(rt.secret),
            to_link_caller(actor),
            LinkFilter(),
            rt.clock.now(),
            limit=1,
            cursor=None,
        )
        cards = await queries.load_cards(session, page.items)
    return [
        OmniboxOption(
            label,
            "copy",
            note=format_name(card.text),
            group=gettext("Actions"),
            script=("copy", build_short_url(rt.settings.public_url, card.text)),
        )
        for card in cards
    ]
