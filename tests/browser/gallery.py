"""Every template with believable data, behind the headers of production: for the browser tests, and to look at.

PYTHONPATH=src:. python -m tests.browser.gallery --port 8123
"""

from __future__ import annotations

import argparse
import hashlib
import io
from collections.abc import Awaitable, Callable
from pathlib import Path

import segno
import uvicorn
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tests.browser.samples import PAGES, Page

WEB = Path(__file__).parents[2] / "src/refract/web"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; manifest-src 'self'"
)


def static(name: str) -> str:
    """The address of a static file, changed whenever its content is."""
    digest = hashlib.blake2b((WEB / "static" / name).read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?v={digest}"


def environment() -> Environment:
    """Strict: a variable that a template needs and no sample gives is an error, not a blank."""
    loader = ChoiceLoader([FileSystemLoader(WEB / "templates"), FileSystemLoader(Path(__file__).parent / "templates")])
    env = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    env.globals["static"] = static
    return env


async def harden(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = CSP
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    return response


def gallery() -> Starlette:
    """An application with one page per sample, `/` for the signed-in start page, and what the pages ask for."""
    env = environment()

    def show(page: Page) -> Response:
        return HTMLResponse(env.get_template(page.template).render(page.context))

    async def sample(request: Request) -> Response:
        page = PAGES.get(request.path_params["name"])
        return show(page) if page else Response("no such sample", status_code=404, media_type="text/plain")

    async def start(_: Request) -> Response:
        return show(PAGES["home"])

    async def qr(_: Request) -> Response:
        out = io.BytesIO()
        segno.make("https://go.example.com/roadmap").save(out, kind="svg", border=2, xmldecl=False, svgns=True)
        return Response(out.getvalue(), media_type="image/svg+xml")

    async def accept(_: Request) -> Response:
        return RedirectResponse("/", status_code=303)

    routes = [
        Route("/", start),
        Route("/sample/{name}", sample),
        Route("/roadmap.qr", qr),
        Route("/{path:path}", accept, methods=["POST"]),
        Mount("/static", StaticFiles(directory=WEB / "static")),
    ]
    return Starlette(
        routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=harden), Middleware(GZipMiddleware, minimum_size=200)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve every template with sample data.")
    parser.add_argument("--port", type=int, default=8123)
    uvicorn.run(gallery(), host="127.0.0.1", port=parser.parse_args().port, log_level="warning")


if __name__ == "__main__":
    main()
