"""`/`: what Refract is, or what is mine; and the API for people."""

from fastapi import Request
from starlette.responses import Response

from refract.identity.actors import MaybeActor
from refract.identity.rendering import respond
from refract.web.reading import chapters
from refract.web.toolkit import page_router

router = page_router()


@router.get("/")
async def start(request: Request, actor: MaybeActor) -> Response:
    """The landing page for strangers, home for people signed in."""
    if actor is None:
        return respond(request, None, "landing.html", page_title="Refract")
    return respond(request, actor, "home.html", page_title="Home")


@router.get("/api/docs")
async def api_docs(request: Request, actor: MaybeActor) -> Response:
    """The OpenAPI document as a page."""
    document = request.app.openapi()
    paragraphs = [" ".join(one.split()).replace("`", "") for one in document["info"]["description"].split("\n\n")]
    return respond(request, actor, "api_docs.html", page_title="API", chapters=chapters(document), paragraphs=paragraphs)
