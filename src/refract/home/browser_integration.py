"""OpenSearch description, web app manifest, and the share target."""

import json
from dataclasses import dataclass
from html import escape
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request
from starlette.responses import Response

from refract.identity.dependencies import WriteCaller
from refract.identity.responses import render_response
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext
from refract.web.static_files import static

router = page_router()
_CACHE_ONE_DAY = {"Cache-Control": "public, max-age=86400"}


@router.get("/opensearch.xml")
async def opensearch(rt: Rt) -> Response:
    """Let a browser open and suggest go links from its address bar."""
    base = escape(rt.settings.public_url, quote=True)
    body = f"""<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
  <ShortName>Refract</ShortName>
  <Description>Open a short link by its name</Description>
  <InputEncoding>UTF-8</InputEncoding>
  <Image width="32" height="32" type="image/x-icon">{base}/favicon.ico</Image>
  <Url type="text/html" method="get" template="{base}/app/go?q={{searchTerms}}"/>
  <Url type="application/x-suggestions+json" method="get"
    template="{base}/app/suggest?q={{searchTerms}}"/>
  <Url type="application/opensearchdescription+xml" rel="self" template="{base}/opensearch.xml"/>
</OpenSearchDescription>
"""
    return Response(
        body, headers=_CACHE_ONE_DAY, media_type="application/opensearchdescription+xml"
    )


@router.get("/manifest.webmanifest")
async def manifest() -> Response:
    """Make Refract installable and a share target for other apps."""
    body = {
        "id": "/",
        "name": "Refract",
        "short_name": "Refract",
        "description": "One home for every link.",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#faf9f7",
        "theme_color": "#2f4bd6",
        "icons": [
            {"src": static("icon.svg"), "type": "image/svg+xml", "sizes": "any"},
            {"src": static("icon-192.png"), "type": "image/png", "sizes": "192x192"},
            {"src": static("icon-512.png"), "type": "image/png", "sizes": "512x512"},
            {
                "src": static("icon-maskable-512.png"),
                "type": "image/png",
                "sizes": "512x512",
                "purpose": "maskable",
            },
        ],
        "shortcuts": [
            {"name": "New link", "url": "/app/links/new"},
            {"name": "Links", "url": "/app/links"},
        ],
        "share_target": {
            "action": "/app/share",
            "method": "GET",
            "params": {"title": "title", "text": "text", "url": "url"},
        },
    }
    return Response(
        json.dumps(body), headers=_CACHE_ONE_DAY, media_type="application/manifest+json"
    )


# The share target, for share sheets and the bookmarklet: the user decides what to do with it.

share_router = page_router()
_WEB_SCHEMES = ("https://", "http://")
_MAX_TITLE_LENGTH = 200
"""Characters beside a URL that still count as its title."""
SharedText = Annotated[str, Query(max_length=10_000)]


@dataclass(frozen=True, slots=True)
class SharedContent:
    """Shared text to save, and the URL in it that can be shortened."""

    text: str
    address: str | None


def parse_shared(url: str, text: str, title: str) -> SharedContent:
    """Find the URL in what was shared; phones put it into any of the fields.

    With a few words beside it, the URL itself is saved; in a longer text it is part of the text.
    """
    found = url.strip() or next(
        (word for word in f"{text} {title}".split() if word.lower().startswith(_WEB_SCHEMES)), ""
    )
    rest = text.replace(found, "") if found else text
    keep = (
        found if found and len(rest.strip()) <= _MAX_TITLE_LENGTH else text.strip() or title.strip()
    )
    return SharedContent(keep, found or None)


@share_router.get("/app/share")
async def shared_page(
    request: Request,
    actor: WriteCaller,
    url: SharedText = "",
    text: SharedText = "",
    title: SharedText = "",
) -> Response:
    """Show what was shared. Nothing is saved before the form is submitted."""
    shared = parse_shared(url, text, title)
    query = urlencode({"destination": (shared.address or "")[:2048], "title": title[:200]})
    shorten = f"/app/links/new?{query}" if shared.address else None
    return render_response(
        request,
        actor,
        "home/share.html",
        page_title=gettext("Save to Refract"),
        text=shared.text,
        title=title,
        shorten=shorten,
    )
