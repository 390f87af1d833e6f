"""Every template with sample data and production headers, for browser tests and reviews.

PYTHONPATH=src:. python -m tests.browser.gallery --port 8123
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Awaitable, Callable
from functools import cache
from mimetypes import guess_type
from pathlib import Path

import segno
import uvicorn
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from refract.app import TEMPLATES
from refract.core.lookalikes import to_ascii_url
from refract.core.net.metadata import PageMetadata
from refract.home.omnibox_actions import OmniboxOption, build_command_option
from refract.home.omnibox_options import build_enter_option
from refract.home.omnibox_parser import COMMANDS, parse_input
from refract.lists.card import render_card
from refract.web.api_guides import mark_code
from refract.web.i18n import negotiate, use_locale
from refract.web.static_files import list_imports, read_static, static
from refract.web.templating import install_i18n, template_loader
from tests.browser.samples import PAGES, Page

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src"
    " 'self'; connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'self';"
    " base-uri 'none'; manifest-src 'self'"
)


@cache
def environment() -> Environment:
    """Return a strict environment: a variable that no sample provides is an error."""
    loader = ChoiceLoader(
        [template_loader(*TEMPLATES), FileSystemLoader(Path(__file__).parent / "templates")]
    )
    env = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    install_i18n(env)
    env.globals.update(static=static, list_imports=list_imports)
    env.filters["ascii_address"] = to_ascii_url
    env.filters["code_marked"] = mark_code
    return env


async def harden(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = CSP
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    return response


def gallery() -> Starlette:  # noqa: C901 - a small function for each thing that pages ask for
    """Return an application with a page per sample, `/` for home, and the fragments they load."""
    env = environment()

    def show(page: Page) -> Response:
        return HTMLResponse(env.get_template(page.template).render(page.context))

    async def sample(request: Request) -> Response:
        page = PAGES.get(request.path_params["name"])
        if page is None:
            return Response("no such sample", status_code=404, media_type="text/plain")
        with use_locale(negotiate(request.headers.get("Accept-Language", ""))):
            return show(page)

    async def start(_: Request) -> Response:
        return show(PAGES["home"])

    async def qr(_: Request) -> Response:
        out = io.BytesIO()
        segno.make("https://go.example.com/roadmap").save(
            out, kind="svg", border=2, xmldecl=False, svgns=True
        )
        return Response(out.getvalue(), media_type="image/svg+xml")

    async def share_image(_: Request) -> Response:
        picture = render_card("Reading", "go.example.com/roadmap", "6 links", "cobalt")
        return Response(picture, media_type="image/png")

    async def list_preview(_: Request) -> Response:
        return show(PAGES["list-preview-framed"])

    async def options(request: Request) -> Response:
        intent = parse_input(request.query_params["q"])
        with use_locale(negotiate(request.headers.get("Accept-Language", ""))):
            shown = [
                build_enter_option(intent),
                OmniboxOption("/roadmap", "link", "/app/links/1", "Q3 roadmap", "Links"),
            ]
            if intent.kind == "nothing":
                shown = [build_command_option(command) for command in COMMANDS]
            template = env.get_template("home/_omnibox_options.html")
            return HTMLResponse(template.render(options=shown))

    async def tried(_: Request) -> Response:
        return HTMLResponse(
            env.get_template("links/_dry_run.html").render(
                leads_to="https://example.com/x", problem=None, usage=None
            )
        )

    async def looked(_: Request) -> Response:
        said = {
            "problem": None,
            "page": PageMetadata("The page’s own title", "What the page is about."),
            "host": "e.com",
            "existing": [{"name": "roadmap", "href": "/app/links/1"}],
            "more_existing": 2,
            "warnings": ["This URL uses HTTP and isn’t encrypted."],
        }
        return HTMLResponse(env.get_template("links/_destination_check.html").render(said))

    async def named(request: Request) -> Response:
        name = request.path_params["name"]
        return JSONResponse(
            {
                "name": name,
                "available": name != "roadmap",
                "reason": "SLUG_TAKEN" if name == "roadmap" else None,
                "detail": f"The name “{name}” is already in use.",
            }
        )

    async def waiting_reports(_: Request) -> Response:
        return HTMLResponse(env.get_template("admin/_open_reports.html").render(number=2))

    async def waiting(_: Request) -> Response:
        return HTMLResponse(env.get_template("components/waiting_badge.html").render(number=120))

    async def how_far(_: Request) -> Response:
        return show(PAGES["import-running"])

    async def link_how_far(_: Request) -> Response:
        return show(PAGES["link-import-running"])

    async def manifest(_: Request) -> Response:
        return JSONResponse({"name": "Refract"}, media_type="application/manifest+json")

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        return Response(
            read_static(name),
            media_type=guess_type(name)[0],
            headers={"Cache-Control": "max-age=3600"},
        )

    async def poll(_: Request) -> Response:
        return Response(status_code=204)  # a page that asks for news of itself: there is none

    async def accept(_: Request) -> Response:
        return RedirectResponse("/", status_code=303)

    routes = [
        Route("/", start),
        Route("/sample/{name}", sample),
        Route("/roadmap.qr", qr),
        Route("/roadmap.png", share_image),
        Route("/app/lists/{list_id}/preview", list_preview),
        Route("/app/omnibox", options),
        Route("/app/links/try", tried),
        Route("/app/links/look", looked),
        Route("/app/review/waiting", waiting),
        Route("/app/invitations/waiting", waiting),
        Route("/app/admin/reports/waiting", waiting_reports),
        Route("/app/library/imports/0", how_far),
        Route("/app/links/imports/0", link_how_far),
        Route("/api/v1/names/{name}", named),
        Route("/manifest.webmanifest", manifest),
        Route("/app/{path:path}", poll),
        Route("/{path:path}", accept, methods=["POST"]),
        Route("/static/{digest}/{name:path}", asset),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=harden),
            Middleware(GZipMiddleware, minimum_size=200),
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve every template with sample data.")
    parser.add_argument("--port", type=int, default=8123)
    uvicorn.run(gallery(), host="127.0.0.1", port=parser.parse_args().port, log_level="warning")


if __name__ == "__main__":
    main()
