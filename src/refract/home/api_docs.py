"""The OpenAPI document and the pages of the API docs, each built once outside of the loop."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Final, TypeVar

from fastapi import FastAPI, Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from refract.core.errors import Unavailable
from refract.core.extraction.pool import ExtractionPool
from refract.core.extraction.tasks import ExtractionError, ExtractionTask
from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.identity.authentication import Caller
from refract.identity.dependencies import OptionalCaller
from refract.identity.responses import render_response
from refract.web.api_docs import ApiReference, ApiSection, build_reference, select_sections
from refract.web.api_guides import load_guides
from refract.web.api_snippets import LANGUAGES
from refract.web.cached_document import CachedDocument
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import Locale, current_locale, lazy_gettext, use_locale
from refract.web.problems import PageNotFound
from refract.web.templating import TemplateRenderer

DESCRIBE_API = ExtractionTask(
    "api_docs",
    "refract.app:describe_api",
    cpu_seconds=60,
    wall_seconds=120.0,
    max_output=16 * 1024 * 1024,
    slow=True,
    alone=True,
)
_OWNER: Final = "api docs"

router = page_router()
Built = TypeVar("Built")


class ApiDocsUnavailable(Unavailable):
    """The API docs can't be built right now. Try again in a moment."""


class ApiDocuments:
    """Documents generated from the routes of an application, each on its first request.

    A process of its own analyses all routes and ends: the analysis takes 20 MB that this process
    would keep.
    """

    def __init__(self, app: FastAPI) -> None:
        rt: Runtime = app.state.rt
        self._app = app
        self._public_url = rt.settings.public_url
        self._pool = rt.singleton(ExtractionPool)
        self._threads = rt.singleton(WorkThreadPool)
        self._built: dict[str, asyncio.Future[Any]] = {}

    async def openapi(self) -> CachedDocument:
        """Return the document as JSON."""
        document, _ = await self._describe()
        return document

    async def content(self) -> dict[str, Any]:
        """Return the context of the template."""
        _, content = await self._describe()
        return content

    async def content_of(self, name: str) -> dict[str, Any]:
        """Return the context of a section's page, or of the overview if the name is empty."""
        content = await self.content()
        if not name:
            return content
        section = next((found for found in content["chapters"] if found.name == name), None)
        if section is None:
            raise PageNotFound
        return content | {"section": section, "page_title": _name_page(section)}

    async def page(self, name: str, locale: Locale) -> CachedDocument:
        """Return a page for visitors who are not signed in.

        It has no form, and so no token of its own: one copy per language is enough.
        """
        content = await self.content_of(name)

        def build() -> Awaitable[CachedDocument]:
            return self._threads.run(self._build_page, name, content, locale)

        return await self._build_once(f"page:{name}:{locale.tag}", build)

    async def _describe(self) -> tuple[CachedDocument, dict[str, Any]]:
        return await self._build_once("description", self._build_description)

    async def _build_once(self, name: str, build: Callable[[], Awaitable[Built]]) -> Built:
        if name not in self._built:
            building = self._built[name] = asyncio.ensure_future(build())
            building.add_done_callback(partial(self._forget_failure, name))
        built: Built = await asyncio.shield(self._built[name])
        return built

    def _forget_failure(self, name: str, building: asyncio.Future[Any]) -> None:
        if building.cancelled() or building.exception() is not None:
            del self._built[name]

    async def _build_description(self) -> tuple[CachedDocument, dict[str, Any]]:
        try:
            pieces = await self._pool.run(DESCRIBE_API, owner=_OWNER, base_url=self._public_url)
        except ExtractionError as exc:
            raise ApiDocsUnavailable from exc
        return await self._threads.run(_read_description, b"".join(pieces))

    def _build_page(self, name: str, content: dict[str, Any], locale: Locale) -> CachedDocument:
        pages: TemplateRenderer = self._app.state.pages
        areas = self._app.state.areas
        with use_locale(locale):
            html = pages.render(
                "home/api_docs.html",
                user=None,
                csrf="",
                request_path=f"/api/docs/{name}".rstrip("/"),
                areas=areas,
                toasts=[],
                **content,
            )
        return CachedDocument.from_bytes(html.encode(), "text/html; charset=utf-8")


def pack_description(document: dict[str, Any]) -> bytes:
    """Return what the process that analyses the routes sends: the reference, then the document."""
    reference = TypeAdapter(ApiReference).dump_json(build_reference(document))
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return reference + b"\n" + body


def _read_description(packed: bytes) -> tuple[CachedDocument, dict[str, Any]]:
    """Return the OpenAPI document and the context of the template."""
    encoded, _, body = packed.partition(b"\n")
    reference = TypeAdapter(ApiReference).validate_json(encoded)
    content = {
        "chapters": reference.sections,
        "common": reference.common_errors,
        "guides": load_guides(reference.base_url),
        "languages": LANGUAGES,
        "lead": reference.lead,
        "page_title": lazy_gettext("API docs"),
        "q": "",
        "section": None,
    }
    return CachedDocument.from_bytes(body, "application/json"), content


def _get_documents(request: Request) -> ApiDocuments:
    state = request.app.state
    if not hasattr(state, "documents"):
        state.documents = ApiDocuments(request.app)
    documents: ApiDocuments = state.documents
    return documents


@router.get("/api/openapi.json")
async def openapi_document(request: Request) -> Response:
    """Return the OpenAPI document."""
    return (await _get_documents(request).openapi()).to_response(request)


@router.get("/api/docs")
async def api_docs(
    request: Request,
    actor: OptionalCaller,
    rt: Rt,
    q: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Show the guides and an index of all operations, or of those that a search finds."""
    if not q.strip():
        return await _respond(request, actor, rt, "")
    content = await _get_documents(request).content()
    found = {"q": q, "chapters": select_sections(content["chapters"], q)}
    return await _render(request, actor, rt, content | found)


@router.get("/api/docs/{section}")
async def api_docs_section(
    request: Request, actor: OptionalCaller, rt: Rt, section: str
) -> Response:
    """Show the operations of a section."""
    return await _respond(request, actor, rt, section)


async def _respond(request: Request, actor: Caller | None, rt: Runtime, name: str) -> Response:
    documents = _get_documents(request)
    if actor is not None:
        return await _render(request, actor, rt, await documents.content_of(name))
    locale = current_locale()
    response = (await documents.page(name, locale)).to_response(request)
    response.headers["Content-Language"] = locale.tag
    response.headers["Vary"] = "Accept-Encoding, Accept-Language, Cookie"
    return response


async def _render(
    request: Request, actor: Caller | None, rt: Runtime, content: dict[str, Any]
) -> Response:
    return await rt.singleton(WorkThreadPool).run(
        render_response, request, actor, "home/api_docs.html", **content
    )


def _name_page(section: ApiSection) -> str:
    return f"{section.name.capitalize()} · API"
