"""What other programs hand us, a phone's share sheet or the bookmarklet: it is shown, and a person says what becomes of it."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request
from starlette.responses import Response

from refract.identity.actors import Writer
from refract.identity.rendering import respond
from refract.web.toolkit import page_router

router = page_router()
_WEB = ("https://", "http://")
_ASIDE = 200
"""Characters beside an address that are no more than its title."""
Handed = Annotated[str, Query(max_length=10_000)]


@dataclass(frozen=True, slots=True)
class Shared:
    """What was handed over: the text to keep, and the address in it that could be shortened."""

    text: str
    address: str | None


def read(url: str, text: str, title: str) -> Shared:
    """Phones put an address anywhere. One with a few words beside it is meant itself; in a longer text it is part of it."""
    found = url.strip() or next((word for word in f"{text} {title}".split() if word.lower().startswith(_WEB)), "")
    rest = text.replace(found, "") if found else text
    keep = found if found and len(rest.strip()) <= _ASIDE else text.strip() or title.strip()
    return Shared(keep, found or None)


@router.get("/app/share")
async def shared_page(request: Request, actor: Writer, url: Handed = "", text: Handed = "", title: Handed = "") -> Response:
    """Looking at it changes nothing."""
    shared = read(url, text, title)
    asked = urlencode({"destination": (shared.address or "")[:2048], "title": title[:200]})
    shorten = f"/app/links/new?{asked}" if shared.address else None
    return respond(request, actor, "home/share.html", page_title="Keep it", text=shared.text, title=title, shorten=shorten)
