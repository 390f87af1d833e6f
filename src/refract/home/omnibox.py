"""The omnibox: one box that takes anything, and says as one types what Enter will do."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.lookalikes import ascii_address
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.home import typed as reading
from refract.home.search import Kind, search
from refract.identity.actors import MaybeReader, Reader, Writer
from refract.identity.rendering import respond, respond_part
from refract.identity.visitors import Actor
from refract.limits.service import MissLimit, SharedLimit
from refract.links import pages as link_pages
from refract.links import queries
from refract.links.dependencies import who
from refract.links.models import Link
from refract.tags.queries import TagSort, page_of_tags
from refract.web.networks import client_network
from refract.web.toolkit import Rt, page_router

router = page_router()
NAMES, LINKS, TAGS, MOST = 5, 5, 3, 10
SUGGESTS_PER_MINUTE = 120
Words = Annotated[str, Query(max_length=10_000)]


class SuggestLimit(SharedLimit):
    """How often a network of strangers may ask for suggestions. A browser asks at every key."""

    def __init__(self, rt: Runtime) -> None:
        super().__init__(rt, "suggest", SUGGESTS_PER_MINUTE, per="a minute for each network")


@dataclass(frozen=True, slots=True)
class Option:
    """One line below the box. The one that is the form's own answer has no address."""

    words: str
    icon: str
    href: str | None = None
    note: str = ""
    sort: str = ""
    post: str | None = None
    """Where the box is sent instead, as `text`."""


@router.get("/app/omnibox")
async def suggestions(request: Request, actor: Reader, rt: Rt, q: Words = "") -> Response:
    """What Enter would do, and what else might be meant."""
    meaning = reading.read(q)
    areas = [area for area in request.app.state.areas if area != "admin" or actor.is_admin]
    options = await _options(rt, actor, meaning, areas) if meaning.kind != "nothing" else []
    return respond_part(request, actor, "home/_omnibox_options.html", options=options)


async def _options(rt: Runtime, actor: Actor, meaning: reading.Meaning, areas: list[str]) -> list[Option]:
    """The number of queries is the same whatever there is to find."""
    if meaning.kind == "shorten":
        rest = [Option("Shorten with a name of your own …", "square-pen", f"/app/links/new?{urlencode({'destination': meaning.text})}")]
        if "library" in areas:
            rest.append(Option("Save to the library", "bookmark-plus", post="/app/items"))
        found = await _found(rt, actor, meaning.text.split("://", 1)[-1].rstrip("/"), areas)
        return [Option(f"Shorten {meaning.text}", "link"), *rest, *found]
    if meaning.kind == "tag":
        return [Option(f"Links tagged {meaning.text}", "tag"), *await _tags(rt, actor, meaning.text)]
    names = await _names(rt, actor, meaning.text)
    exact = meaning.kind == "open" or any(name.words[1:].casefold() == meaning.text.casefold() for name in names)
    first = Option(f"Open /{meaning.text}", "arrow-up-right") if exact else Option(f"Search for “{meaning.text}”", "search")
    names = [name for name in names if name.words[1:].casefold() != meaning.text.casefold()]
    if meaning.kind == "open":
        return [first, *names]
    found = await _found(rt, actor, meaning.text, areas)
    commands = [Option(one.words, one.icon, one.href, sort="Go to") for one in reading.commands_for(meaning.text, areas)]
    if "library" in areas and " " in meaning.text:
        commands.append(Option("Save this thought to the library", "bookmark-plus", post="/app/items", sort="Go to"))
    return [first, *names, *found, *await _tags(rt, actor, meaning.text), *commands]


async def _names(rt: Runtime, actor: Actor, text: str) -> list[Option]:
    async with rt.db.read() as session:
        found = await queries.suggest_names(session, text.split("/", 1)[0], who(actor), rt.clock.now(), NAMES)
    return [Option(f"/{name}", "arrow-up-right", f"/{name}", _told(link), "Go there") for name, link in found]


_ICONS = {Kind.LINK: ("link", "My links"), Kind.LIST: ("list-ordered", "My lists"), Kind.ITEM: ("file-text", "Library")}


_MORE = {Kind.LINK: "/app/links", Kind.LIST: "/app/lists", Kind.ITEM: "/app/library"}
_AREAS = {Kind.LINK: "links", Kind.LIST: "lists", Kind.ITEM: "library"}


async def _found(rt: Runtime, actor: Actor, text: str, areas: Sequence[str]) -> list[Option]:
    """What is mine and has these words."""
    kinds = [kind for kind in Kind if _AREAS[kind] in areas]
    return [
        Option(one.title, _ICONS[one.kind][0], one.href, one.note, _ICONS[one.kind][1])
        for one in await search(rt, actor, text, kinds, LINKS)
    ]


async def _tags(rt: Runtime, actor: Actor, text: str) -> list[Option]:
    async with rt.db.read() as session:
        visible, asker = queries.visible_tags(who(actor)), [actor.user.id, actor.is_admin]
        cursors = Cursors(rt.secret)
        page = await page_of_tags(session, cursors, visible, asker, q=text[:50], sort=TagSort.USAGE, limit=TAGS, cursor=None)
    return [Option(tag.name, "tag", f"/app/links?{urlencode({'tag': tag.key})}", f"{tag.usage_count} links", "Tags") for tag in page.items]


@router.post("/app/omnibox")
async def omnibox(request: Request, actor: Writer, rt: Rt, q: Annotated[str, Form(max_length=10_000)] = "") -> Response:
    """An address is shortened, a name is opened, a tag is looked up, anything else is searched for."""
    meaning = reading.read(q)
    if meaning.kind == "nothing":
        return RedirectResponse("/", 303)
    if meaning.kind == "shorten":
        made, errors = await link_pages.shorten(rt, actor, meaning.text)
        if made is None:
            return link_pages.show_form(request, actor, rt, status=422, values={"destination": meaning.text}, errors=errors)
        return RedirectResponse(f"/?created={made}", 303)
    if meaning.kind == "tag":
        return RedirectResponse(f"/app/links?{urlencode({'tag': meaning.text[:200]})}", 303)
    name = meaning.text.split("/", 1)[0]
    async with rt.db.read() as session:
        known = await queries.resolve(session, name) if " " not in meaning.text else None
    if known is None and " " not in meaning.text:
        await rt.part(MissLimit).charge_network(client_network(request, rt), actor.user.id)
    if known or meaning.kind == "open":
        return RedirectResponse(f"/{quote(meaning.text, safe='/%?=&+.-_~')}", 303)
    return RedirectResponse(f"/app/search?{urlencode({'q': meaning.text[:200]})}", 303)


@router.get("/app/search")
async def search_page(request: Request, actor: Reader, rt: Rt, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Everything of mine that has these words, kind by kind."""
    areas = request.app.state.areas
    found = await search(rt, actor, q, [kind for kind in Kind if _AREAS[kind] in areas], MOST)
    groups = [(_ICONS[kind], f"{_MORE[kind]}?{urlencode({'q': q})}", [one for one in found if one.kind == kind]) for kind in Kind]
    return respond(request, actor, "home/search.html", page_title="Search", q=q, groups=[group for group in groups if group[2]], most=MOST)


@router.get("/app/go")
async def go(request: Request, actor: Reader, rt: Rt, q: Words = "") -> Response:
    """A browser's keyword: `go jira PROJ-1` opens /jira/PROJ-1; words that begin with no name are searched for."""
    path = reading.go_path(q)
    if not path:
        return RedirectResponse("/", 303)
    async with rt.db.read() as session:
        known = await queries.resolve(session, path.split("/", 1)[0])
    if known is None:
        await rt.part(MissLimit).charge_network(client_network(request, rt), actor.user.id)
    if known is None and " " in q.strip():
        return RedirectResponse(f"/app/search?{urlencode({'q': q.strip()[:200]})}", 303)
    return RedirectResponse(f"/{quote(path, safe='/%+.-_~')}", 303)


@router.get("/app/suggest")
async def suggest(request: Request, actor: MaybeReader, rt: Rt, q: Words = "") -> Response:
    """Return names that begin with what is typed, in the form browsers expect. Strangers get published lists alone."""
    if actor is None:
        await rt.part(SuggestLimit).charge(client_network(request, rt))
    async with rt.db.read() as session:
        asker = who(actor) if actor else None
        found = await queries.suggest_names(session, reading.go_path(q), asker, rt.clock.now(), 8)
    base = rt.settings.public_url
    names = [name for name, _ in found]
    body = json.dumps([q, names, [_told(link) for _, link in found], [f"{base}/{name}" for name in names]], ensure_ascii=False)
    return Response(body, media_type="application/x-suggestions+json")


def _told(link: Link | None) -> str:
    return (link.title or ascii_address(link.destination)) if link else "List"
