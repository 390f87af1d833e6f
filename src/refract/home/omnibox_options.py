"""Suggestions of the omnibox. The number of queries does not depend on the data."""

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from refract.core.lookalikes import to_ascii_url
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.home import omnibox_parser
from refract.home.omnibox_actions import (
    OmniboxContext,
    OmniboxOption,
    build_command_option,
    build_copy_option,
    build_object_actions,
    build_page_actions,
    build_save_option,
)
from refract.home.omnibox_parser import OmniboxIntent
from refract.home.search import SearchKind, search_all
from refract.identity.authentication import Caller
from refract.links import queries
from refract.links.dependencies import to_link_caller
from refract.links.models import Link
from refract.tags.queries import TagSort, load_tags_page
from refract.web.i18n import gettext, lazy_gettext, ngettext

MAX_NAME_OPTIONS, MAX_HIT_OPTIONS, MAX_TAG_OPTIONS = 5, 5, 3
KIND_HEADINGS = {
    SearchKind.LINK: ("link", lazy_gettext("Links")),
    SearchKind.ITEM: ("file-text", lazy_gettext("Library")),
    SearchKind.LIST: ("list-ordered", lazy_gettext("Lists")),
}
KIND_AREAS = {SearchKind.LINK: "links", SearchKind.LIST: "lists", SearchKind.ITEM: "library"}


def build_open_path(text: str) -> str:
    """Return the path of a typed name, always on this host."""
    return f"/{quote(text.lstrip('/'), safe='/%?=&+.-_~')}"


def build_search_path(text: str) -> str:
    return f"/app/search?{urlencode({'q': text[:200]})}"


def build_enter_option(intent: OmniboxIntent) -> OmniboxOption:
    """Return the first option, which describes what Enter does."""
    text = intent.text
    match intent.kind:
        case "shorten":
            return OmniboxOption(gettext("Shorten {url}", url=text), "link")
        case "open":
            label = gettext("Open /{name}", name=text)
            return OmniboxOption(label, "arrow-up-right", build_open_path(text))
        case "tag":
            return OmniboxOption(gettext("Links tagged {tag}", tag=text), "tag")
        case _:
            return OmniboxOption(gettext("Search for “{text}”", text=text), "search")


async def build_options(
    rt: Runtime, actor: Caller, intent: OmniboxIntent, context: OmniboxContext
) -> list[OmniboxOption]:
    """Return the suggestions: what Enter does, then actions, places and objects, each once."""
    match intent.kind:
        case "nothing":
            return await _build_start_options(rt, actor, context)
        case "shorten":
            return await _build_url_options(rt, actor, intent.text, context)
        case "tag":
            return [build_enter_option(intent), *await _build_tag_options(rt, actor, intent.text)]
        case _:
            return await _build_text_options(rt, actor, intent, context)


async def _build_start_options(
    rt: Runtime, actor: Caller, context: OmniboxContext
) -> list[OmniboxOption]:
    """Return what is offered before anything is typed. Recent pages are the browser's to add."""
    commands = [
        command
        for command in omnibox_parser.COMMANDS
        if (not command.area or command.area in context.areas) and command.area != "admin"
    ]
    actions = [command for command in commands if command.is_action]
    places = [command for command in commands if not command.is_action]
    return [
        *await build_page_actions(rt, actor, context),
        *(build_command_option(command) for command in actions[:3]),
        *await build_copy_option(rt, actor, context),
        *(build_command_option(command) for command in [*actions[3:], *places]),
    ]


async def _build_text_options(
    rt: Runtime, actor: Caller, intent: OmniboxIntent, context: OmniboxContext
) -> list[OmniboxOption]:
    async with rt.db.read() as session:
        named = await queries.suggest_names(
            session,
            intent.text.split("/", 1)[0],
            to_link_caller(actor),
            rt.clock.now(),
            MAX_NAME_OPTIONS,
        )
    typed = intent.text.casefold()
    exact = [(name, link) for name, link in named if name.casefold() == typed]
    found = await _build_found_options(rt, actor, intent, context, named)
    if intent.kind == "open":
        return [build_enter_option(intent), *build_object_actions(rt, exact), *found]
    commands = omnibox_parser.find_commands(intent.text, context.areas)
    command = omnibox_parser.find_exact_command(intent.text, context.areas)
    first = [build_enter_option(intent)]
    if exact:
        first = [build_enter_option(OmniboxIntent("open", intent.text)), *first]
    if command is not None:
        first = [build_command_option(command, group=False), *first]
    shown = [
        *build_object_actions(rt, exact),
        *await build_page_actions(rt, actor, context, intent.text),
        *await build_copy_option(rt, actor, context, intent.text),
        *(build_command_option(entry) for entry in commands if entry is not command),
    ]
    if "library" in context.areas and " " in intent.text:
        shown.append(build_save_option(gettext("Save as note")))
    actions = gettext("Actions")
    shown.sort(key=lambda option: option.group != actions)
    return [*first, *shown, *found, *await _build_tag_options(rt, actor, intent.text)]


async def _build_url_options(
    rt: Runtime, actor: Caller, url: str, context: OmniboxContext
) -> list[OmniboxOption]:
    options = [
        build_enter_option(OmniboxIntent("shorten", url)),
        OmniboxOption(
            gettext("Create with a custom name…"),
            "square-pen",
            f"/app/links/new?{urlencode({'destination': url})}",
            group=gettext("Actions"),
        ),
    ]
    if "library" in context.areas:
        options.append(build_save_option(gettext("Save to library")))
    words = OmniboxIntent("search", url.split("://", 1)[-1].rstrip("/"))
    return [*options, *await _build_found_options(rt, actor, words, context, [])]


async def _build_found_options(
    rt: Runtime,
    actor: Caller,
    intent: OmniboxIntent,
    context: OmniboxContext,
    named: Sequence[tuple[str, Link | None]],
) -> list[OmniboxOption]:
    """Return links, items and lists with the words, and those with such a name, each once."""
    typed, base = intent.text.casefold(), rt.settings.public_url
    kinds = [kind for kind in KIND_HEADINGS if KIND_AREAS[kind] in context.areas]
    hits = (
        await search_all(rt, actor, intent.text, kinds, MAX_HIT_OPTIONS)
        if intent.kind == "search"
        else []
    )
    seen: set[str] = set()
    options: dict[SearchKind, list[OmniboxOption]] = {kind: [] for kind in KIND_HEADINGS}

    def add(kind: SearchKind, label: str, href: str, note: str) -> None:
        icon, heading = KIND_HEADINGS[kind]
        options[kind].append(OmniboxOption(label, icon, href, note, str(heading)))

    own_lists = {hit.url for hit in hits if hit.kind == SearchKind.LIST}
    for name, link in named:
        href = f"/app/links/{link.id}" if link else f"/{name}"
        if href in seen or f"{base}/{name}" in own_lists:
            continue
        seen.add(href)
        if name.casefold() != typed:
            kind = SearchKind.LINK if link else SearchKind.LIST
            add(kind, f"/{name}", href, describe_link(link))
    for hit in hits:
        if hit.href not in seen:
            add(hit.kind, hit.title, hit.href, hit.note)
    return [option for kind in KIND_HEADINGS for option in options[kind]]


async def _build_tag_options(rt: Runtime, actor: Caller, text: str) -> list[OmniboxOption]:
    async with rt.db.read() as session:
        visible, asker = (
            queries.is_visible_tag(to_link_caller(actor)),
            [actor.user.id, actor.is_admin],
        )
        page = await load_tags_page(
            session,
            CursorCodec(rt.secret),
            [visible],
            asker,
            q=text[:50],
            sort=TagSort.USAGE,
            limit=MAX_TAG_OPTIONS,
            cursor=None,
        )
    return [
        OmniboxOption(
            tag.name,
            "tag",
            f"/app/links?{urlencode({'tag': tag.key})}",
            ngettext("{n} link", "{n} links", tag.usage_count),
            gettext("Tags"),
        )
        for tag in page.items
    ]


def describe_link(link: Link | None) -> str:
    return (link.title or to_ascii_url(link.destination)) if link else gettext("List")
