"""`/`: what Refract is, or what is mine; the omnibox, which takes anything; and the API for people."""

from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from refract.core.urls import BadUrl, parse_web_url
from refract.identity.actors import MaybeActor, Writer
from refract.identity.rendering import respond
from refract.links import pages as link_pages
from refract.links import queries
from refract.links.edge import Space
from refract.web.reading import chapters
from refract.web.toolkit import Rt, page_router

router = page_router()
LATEST = 8


@router.get("/")
async def start(request: Request, actor: MaybeActor, rt: Rt, created: Annotated[str | None, Query(max_length=20)] = None) -> Response:
    """The landing page for strangers, home for people signed in."""
    if actor is None:
        return respond(request, None, "landing.html", page_title="Refract")
    links = await link_pages.newest(rt, actor, LATEST)
    made = next((link for link in links if link["id"] == created), None)
    return respond(request, actor, "home.html", page_title="Home", links=links, created=made)


@router.get("/api/docs")
async def api_docs(request: Request, actor: MaybeActor) -> Response:
    """The OpenAPI document as a page."""
    document = request.app.openapi()
    paragraphs = [" ".join(one.split()).replace("`", "") for one in document["info"]["description"].split("\n\n")]
    return respond(request, actor, "api_docs.html", page_title="API", chapters=chapters(document), paragraphs=paragraphs)


@router.post("/app/omnibox")
async def omnibox(request: Request, actor: Writer, rt: Rt, space: Space, q: Annotated[str, Form(max_length=10_000)] = "") -> Response:
    """An address is shortened, a name is opened, anything else is searched for."""
    typed = q.strip()
    if not typed:
        return RedirectResponse("/", 303)
    if (address := _address(typed)) is not None:
        made, errors = await link_pages.shorten(rt, space, actor, address)
        if made is not None:
            return RedirectResponse(f"/?created={made}", 303)
        return respond(request, actor, "home.html", status=422, page_title="Home", links=[], values={"destination": typed}, errors=errors)
    name = typed.removeprefix("/")
    async with rt.db.read() as session:
        known = await queries.resolve(session, name) if " " not in name and "/" not in name else None
    return RedirectResponse(f"/{quote(name)}" if known else f"/app/links?{urlencode({'q': typed[:200]})}", 303)


def _address(typed: str) -> str | None:
    """What was typed as an address, if it looks like one: `example.com/page` does, `roadmap` does not."""
    if any(character.isspace() for character in typed) or ("." not in typed and "://" not in typed):
        return None
    try:
        parse_web_url(typed, assume_https=True)
    except BadUrl:
        return typed if "://" in typed else None
    return typed if "://" in typed else f"https://{typed}"
