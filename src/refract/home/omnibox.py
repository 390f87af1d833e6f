"""The omnibox: one field for URLs, names, tags and search, with suggestions while typing."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.lookalikes import to_ascii_url
from refract.core.pagination import CursorCodec
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.home import omnibox_parser
from refract.home.search import SearchKind, search_all
from refract.identity.authentication import Caller
from refract.identity.dependencies import OptionalReadCaller, ReadCaller, WriteCaller
from refract.identity.responses import render_fragment, render_response
from refract.limits.service import MissLimit, SharedLimit
from refract.links import pages as link_pages
from refract.links import queries
from refract.links.dependencies import to_link_caller
from refract.links.models import Link
from refract.names.service import check_code_guess
from refract.redirect.resolver import parse_typed_path
from refract.tags.queries import TagSort, load_tags_page
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, lazy_gettext, ngettext
from refract.web.networks import client_network

router = page_router()
MAX_NAME_OPTIONS, MAX_HIT_OPTIONS, MAX_TAG_OPTIONS, MAX_HITS_PER_KIND = 5, 5, 3, 10
SUGGESTIONS_PER_MINUTE = 120
OmniboxText = Annotated[str, Query(max_length=10_000)]


class SuggestLimit(SharedLimit):
    """Rate limit of suggestions without an account. Browsers send a request per key."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt, "suggest", SUGGESTIONS_PER_MINUTE, per=Phrase("per minute and network")
        )


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


@router.get("/app/omnibox")
async def list_options(
    request: Request, actor: ReadCaller, rt: Rt, q: OmniboxText = ""
) -> Response:
    """Return the suggestions. The first is what Enter does."""
    intent = omnibox_parser.parse_input(q)
    areas = [area for area in request.app.state.areas if area != "admin" or actor.is_admin]
    options = await _build_options(rt, actor, intent, areas) if intent.kind != "nothing" else []
    return render_fragment(request, actor, "home/_omnibox_options.html", options=options)


def build_enter_option(intent: omnibox_parser.OmniboxIntent) -> OmniboxOption:
    """Return the first option, which describes what Enter does."""
    text = intent.text
    match intent.kind:
        case "shorten":
            return OmniboxOption(gettext("Shorten {url}", url=text), "link")
        case "open":
            return OmniboxOption(gettext("Open /{name}", name=text), "arrow-up-right")
        case "tag":
            return OmniboxOption(gettext("Links tagged {tag}", tag=text), "tag")
        case _:
            return OmniboxOption(gettext("Search for “{text}”", text=text), "search")


async def _build_options(
    rt: Runtime, actor: Caller, intent: omnibox_parser.OmniboxIntent, areas: list[str]
) -> list[OmniboxOption]:
    """Build the suggestions. The number of queries does not depend on the data."""
    if intent.kind == "shorten":
        return await _build_url_options(rt, actor, intent.text, areas)
    if intent.kind == "tag":
        return [build_enter_option(intent), *await _build_tag_options(rt, actor, intent.text)]
    names = await _build_name_options(rt, actor, intent.text)
    exact = intent.kind == "open" or any(
        name.label[1:].casefold() == intent.text.casefold() for name in names
    )
    first = build_enter_option(replace(intent, kind="open") if exact else intent)
    names = [name for name in names if name.label[1:].casefold() != intent.text.casefold()]
    if intent.kind == "open":
        return [first, *names]
    found = await _build_hit_options(rt, actor, intent.text, areas)
    commands = [
        OmniboxOption(str(command.label), command.icon, command.href, group=gettext("Go to"))
        for command in omnibox_parser.find_commands(intent.text, areas)
    ]
    if "library" in areas and " " in intent.text:
        commands.append(
            OmniboxOption(
                gettext("Save as note"),
                "bookmark-plus",
                post="/app/items",
                group=gettext("Actions"),
            )
        )
    return [first, *names, *found, *await _build_tag_options(rt, actor, intent.text), *commands]


async def _build_url_options(
    rt: Runtime, actor: Caller, url: str, areas: list[str]
) -> list[OmniboxOption]:
    options = [
        build_enter_option(omnibox_parser.OmniboxIntent("shorten", url)),
        OmniboxOption(
            gettext("Create with a custom name…"),
            "square-pen",
            f"/app/links/new?{urlencode({'destination': url})}",
        ),
    ]
    if "library" in areas:
        options.append(
            OmniboxOption(gettext("Save to library"), "bookmark-plus", post="/app/items")
        )
    found = await _build_hit_options(rt, actor, url.split("://", 1)[-1].rstrip("/"), areas)
    return [*options, *found]


async def _build_name_options(rt: Runtime, actor: Caller, text: str) -> list[OmniboxOption]:
    async with rt.db.read() as session:
        found = await queries.suggest_names(
            session, text.split("/", 1)[0], to_link_caller(actor), rt.clock.now(), MAX_NAME_OPTIONS
        )
    return [
        OmniboxOption(
            f"/{name}", "arrow-up-right", f"/{name}", _describe_link(link), gettext("Open")
        )
        for name, link in found
    ]


_KIND_HEADINGS = {
    SearchKind.LINK: ("link", lazy_gettext("Links")),
    SearchKind.LIST: ("list-ordered", lazy_gettext("Lists")),
    SearchKind.ITEM: ("file-text", lazy_gettext("Library")),
}


_KIND_PATHS = {
    SearchKind.LINK: "/app/links",
    SearchKind.LIST: "/app/lists",
    SearchKind.ITEM: "/app/library",
}
_KIND_AREAS = {SearchKind.LINK: "links", SearchKind.LIST: "lists", SearchKind.ITEM: "library"}


async def _build_hit_options(
    rt: Runtime, actor: Caller, text: str, areas: Sequence[str]
) -> list[OmniboxOption]:
    """Return the caller's links, lists and items that contain the words."""
    kinds = [kind for kind in SearchKind if _KIND_AREAS[kind] in areas]
    return [
        OmniboxOption(
            hit.title,
            _KIND_HEADINGS[hit.kind][0],
            hit.href,
            hit.note,
            str(_KIND_HEADINGS[hit.kind][1]),
        )
        for hit in await search_all(rt, actor, text, kinds, MAX_HIT_OPTIONS)
    ]


async def _build_tag_options(rt: Runtime, actor: Caller, text: str) -> list[OmniboxOption]:
    async with rt.db.read() as session:
        visible, asker = (
            queries.is_visible_tag(to_link_caller(actor)),
            [actor.user.id, actor.is_admin],
        )
        cursors = CursorCodec(rt.secret)
        page = await load_tags_page(
            session,
            cursors,
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


@router.post("/app/omnibox")
async def submit_omnibox(
    request: Request, actor: WriteCaller, rt: Rt, q: Annotated[str, Form(max_length=10_000)] = ""
) -> Response:
    """Shorten a URL, open a name, filter by a tag, or search for anything else."""
    intent = omnibox_parser.parse_input(q)
    if intent.kind == "nothing":
        return RedirectResponse("/", 303)
    if intent.kind == "shorten":
        made, errors = await link_pages.shorten_url(rt, actor, intent.text)
        if made is None:
            return link_pages.render_form(
                request, actor, rt, status=422, values={"destination": intent.text}, errors=errors
            )
        return RedirectResponse(f"/?created={made}", 303)
    if intent.kind == "tag":
        return RedirectResponse(f"/app/links?{urlencode({'tag': intent.text[:200]})}", 303)
    target = (
        await _resolve_path(request, actor, rt, intent.text) if " " not in intent.text else None
    )
    if target or intent.kind == "open":
        return RedirectResponse(f"/{quote(intent.text, safe='/%?=&+.-_~')}", 303)
    return RedirectResponse(f"/app/search?{urlencode({'q': intent.text[:200]})}", 303)


async def _resolve_path(
    request: Request, actor: Caller, rt: Runtime, path: str
) -> queries.NameResolution | None:
    """Return what a typed path leads to. Raises `RateLimited` past the limit of misses."""
    name = parse_typed_path(path).name
    misses, network = rt.singleton(MissLimit), client_network(request, rt)
    check_code_guess(rt, name, network, actor.user.id)
    async with rt.db.read() as session:
        known = await queries.resolve_name(session, name)
    if known is None:
        await misses.charge_network(network, actor.user.id)
    elif known.has_guessable_code:
        misses.check_code(network, actor.user.id)
    return known


@router.get("/app/search")
async def search_page(
    request: Request, actor: ReadCaller, rt: Rt, q: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Show the caller's links, lists and items that contain the words."""
    areas = request.app.state.areas
    found = await search_all(
        rt, actor, q, [kind for kind in SearchKind if _KIND_AREAS[kind] in areas], MAX_HITS_PER_KIND
    )
    groups = [
        (
            _KIND_HEADINGS[kind],
            f"{_KIND_PATHS[kind]}?{urlencode({'q': q})}",
            [hit for hit in found if hit.kind == kind],
        )
        for kind in SearchKind
    ]
    return render_response(
        request,
        actor,
        "home/search.html",
        page_title=gettext("Search"),
        q=q,
        groups=[group for group in groups if group[2]],
        most=MAX_HITS_PER_KIND,
    )


@router.get("/app/go")
async def open_name(request: Request, actor: ReadCaller, rt: Rt, q: OmniboxText = "") -> Response:
    """Open a browser keyword: `go jira PROJ-1` opens /jira/PROJ-1. Without such a name, search."""
    path = omnibox_parser.parse_go_path(q)
    if not path:
        return RedirectResponse("/", 303)
    target = await _resolve_path(request, actor, rt, path)
    if target is None and " " in q.strip():
        return RedirectResponse(f"/app/search?{urlencode({'q': q.strip()[:200]})}", 303)
    return RedirectResponse(f"/{quote(path, safe='/%+.-_~')}", 303)


@router.get("/app/suggest")
async def suggest_names(
    request: Request, actor: OptionalReadCaller, rt: Rt, q: OmniboxText = ""
) -> Response:
    """Return names with a prefix, in the OpenSearch suggestions format.

    Without an account only names of published lists are returned.
    """
    if actor is None:
        await rt.singleton(SuggestLimit).charge(client_network(request, rt))
    async with rt.db.read() as session:
        asker = to_link_caller(actor) if actor else None
        found = await queries.suggest_names(
            session, omnibox_parser.parse_go_path(q), asker, rt.clock.now(), 8
        )
    base = rt.settings.public_url
    names = [name for name, _ in found]
    body = json.dumps(
        [
            q,
            names,
            [_describe_link(link) for _, link in found],
            [f"{base}/{name}" for name in names],
        ],
        ensure_ascii=False,
    )
    return Response(body, media_type="application/x-suggestions+json")


def _describe_link(link: Link | None) -> str:
    return (link.title or to_ascii_url(link.destination)) if link else gettext("List")
