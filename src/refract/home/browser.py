"""What browsers ask for: the search description behind a keyword, and the manifest that lets a phone install and share."""

import json
from html import escape

from starlette.responses import Response

from refract.web.render import static
from refract.web.toolkit import Rt, page_router

router = page_router()
_DAY = {"Cache-Control": "public, max-age=86400"}


@router.get("/opensearch.xml")
async def opensearch(rt: Rt) -> Response:
    """Lets a browser open go-links from its address bar, and suggest them."""
    base = escape(rt.settings.public_url, quote=True)
    body = f"""<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
  <ShortName>Refract</ShortName>
  <Description>Open a short link by its name</Description>
  <InputEncoding>UTF-8</InputEncoding>
  <Image width="32" height="32" type="image/x-icon">{base}/favicon.ico</Image>
  <Url type="text/html" method="get" template="{base}/app/go?q={{searchTerms}}"/>
  <Url type="application/x-suggestions+json" method="get" template="{base}/app/suggest?q={{searchTerms}}"/>
  <Url type="application/opensearchdescription+xml" rel="self" template="{base}/opensearch.xml"/>
</OpenSearchDescription>
"""
    return Response(body, headers=_DAY, media_type="application/opensearchdescription+xml")


@router.get("/manifest.webmanifest")
async def manifest() -> Response:
    """Installs Refract as an app, and makes it a place that other apps share addresses with."""
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
            {"src": static("icon-maskable-512.png"), "type": "image/png", "sizes": "512x512", "purpose": "maskable"},
        ],
        "shortcuts": [{"name": "New link", "url": "/app/links/new"}, {"name": "Links", "url": "/app/links"}],
        "share_target": {"action": "/app/share", "method": "GET", "params": {"title": "title", "text": "text", "url": "url"}},
    }
    return Response(json.dumps(body), headers=_DAY, media_type="application/manifest+json")
