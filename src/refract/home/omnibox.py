"""The omnibox: one field for URLs, names, tags and search, with suggestions while typing."""

import json
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.home import omnibox_parser
from refract.home.omnibox_actions import OmniboxContext
from refract.home.omnibox_options import (
    KIND_AREAS,
    KIND_HEADINGS,
    build_open_path,
    build_options,
    build_search_path,
    describe_link,
)
from refract.home.search import SearchKind, count_hits, explain_hits, search_all
from refract.identity.authentication import Caller
from refract.identity.dependencies import OptionalReadCaller, ReadCaller, WriteCaller
from refract.identity.responses import render_fragment, render_onward, render_response
from refract.library.search import parse_terms
from refract.limits.shared_limits import MissLimit, SharedLimit
from refract.links import pages as link_pages
from refract.links import queries
from refract.links.dependencies import to_link_caller
from refract.names.service import check_code_guess
from refract.redirect.resolver import parse_typed_path
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext
from refract.web.networks import client_network

router = page_router()
MAX_HITS_PER_KIND = 10
_KIND_PATHS = {
    SearchKind.LINK: "/app/links",
    SearchKind.LIST: "/app/lists",
    SearchKind.ITEM: "/app/library",
}
SUGGESTIONS_PER_MINUTE = 120
OmniboxText = Annotated[str, Query(max_length=10_000)]


class SuggestLimit(SharedLimit):
    """Rate limit of suggestions without an account. Browsers send a request per key."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(
            rt, "suggest", SUGGESTIONS_PER_MINUTE, per=Phrase("per minute and network")
        )


@router.get("/app/omnibox")
async def list_options(
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    q: OmniboxText = "",
    at: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Return the suggestions on the page `at`. The first is what Enter does."""
    context = OmniboxContext(_list_areas(request, actor), at)
    options = await build_options(rt, actor, omnibox_parser.parse_input(q), context)
    return render_fragment(request, actor, "home/_omnibox_options.html", options=options)


def _list_areas(request: Request, actor: Caller) -> list[str]:
    return [area for area in request.app.state.areas if area != "admin" or actor.is_admin]


@router.post("/app/omnibox")
async def submit_omnibox(
    request: Request, actor: WriteCaller, rt: Rt, q: Annotated[str, Form(max_length=10_000)] = ""
) -> Response:
    """Shorten a URL, go to a place, open a name, filter by a tag, or search for anything else."""
    intent = omnibox_parser.parse_input(q)
    if intent.kind == "shorten":
        made, errors = await link_pages.shorten_url(rt, actor, intent.text)
        if made is None:
            return await link_pages.render_form(
                request, actor, rt, status=422, values={"destination": intent.text}, errors=errors
            )
        return RedirectResponse(f"/?created={made}", 303)
    if place := _find_place(intent, _list_areas(request, actor)):
        return RedirectResponse(place, 303)
    target = (
        await _resolve_path(request, actor, rt, intent.text) if " " not in intent.text else None
    )
    if target or intent.kind == "open":
        return render_onward(request, actor, build_open_path(intent.text))
    return RedirectResponse(build_search_path(intent.text), 303)


def _find_place(intent: omnibox_parser.OmniboxIntent, areas: list[str]) -> str | None:
    """Return the page that the input names: a place, or the links with a tag."""
    if intent.kind == "nothing":
        return "/"
    if intent.kind == "tag":
        return f"/app/links?{urlencode({'tag': intent.text[:200]})}"
    command = omnibox_parser.find_exact_command(intent.text, areas)
    return command.href if command is not None and intent.kind == "search" else None


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
    kinds = [kind for kind in SearchKind if KIND_AREAS[kind] in areas]
    found = await search_all(rt, actor, q, kinds, MAX_HITS_PER_KIND)
    counts = await count_hits(rt, actor, q, kinds) if q.strip() else {}
    words = parse_terms(q).words
    groups = [
        {
            "heading": KIND_HEADINGS[kind][1],
            "icon": KIND_HEADINGS[kind][0],
            "href": f"{_KIND_PATHS[kind]}?{urlencode({'q': q})}",
            "count": counts.get(kind, 0),
            "hits": [hit for hit in found if hit.kind == kind],
        }
        for kind in SearchKind
    ]
    return render_response(
        request,
        actor,
        "home/search.html",
        page_title=gettext("Search"),
        q=q,
        words=words,
        reasons=await explain_hits(rt, found, words),
        groups=[group for group in groups if group["hits"]],
    )


@router.get("/app/go")
async def open_name(request: Request, actor: ReadCaller, rt: Rt, q: OmniboxText = "") -> Response:
    """Open a browser keyword: `go jira PROJ-1` opens /jira/PROJ-1. Without such a name, search."""
    path = omnibox_parser.parse_go_path(q)
    if not path:
        return RedirectResponse("/", 303)
    target = await _resolve_path(request, actor, rt, path)
    if target is None and " " in q.strip():
        return RedirectResponse(build_search_path(q.strip()), 303)
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
            [describe_link(link) for _, link in found],
            [f"{base}/{name}" for name in names],
        ],
        ensure_ascii=False,
    )
    return Response(body, media_type="application/x-suggestions+json")
