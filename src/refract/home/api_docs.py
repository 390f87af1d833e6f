"""The OpenAPI document and the pages of the API docs, each built once in a thread."""

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Query, Request
from starlette.responses import Response

from refract.core.runtime import Runtime
from refract.core.threads import WorkThreadPool
from refract.identity.authentication import Caller
from refract.identity.dependencies import OptionalCaller
from refract.identity.responses import render_response
from refract.web.api_docs import (
    ApiSection,
    build_sections,
    find_common_errors,
    select_sections,
)
from refract.web.api_guides import load_guides
from refract.web.api_snippets import LANGUAGES
from refract.web.cached_document import CachedDocument
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import Locale, current_locale, lazy_gettext, use_locale
from refract.web.problems import PageNotFound
from refract.web.templating import TemplateRenderer

router = page_router()
Built = TypeVar("Built")


class ApiDocuments:
    """Documents generated from the routes of an application, each on its first request."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._threads = app.state.rt.singleton(WorkThreadPool)
        self._built: dict[str, asyncio.Future[Any]] = {}

    async def openapi(self) -> CachedDocument:
        """Return the document as JSON."""
        return await self._build_once("openapi", self._build_openapi)

    async def content(self) -> dict[str, Any]:
        """Return the context of the template."""
        return await self._build_once("content", self._build_content)

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
        return await self._build_once(
            f"page:{name}:{locale.tag}", lambda: self._build_page(name, content, locale)
        )

    async def _build_once(self, name: str, build: Callable[[], Built]) -> Built:
        if name not in self._built:
            self._built[name] = asyncio.ensure_future(self._threads.run(build))
        built: Built = await asyncio.shield(self._built[name])
        return built

    def _build_openapi(self) -> CachedDocument:
        body = json.dumps(self._app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()
        return CachedDocument.from_bytes(body, "application/json")

    def _build_content(self) -> dict[str, Any]:
        document = self._app.openapi()
        return {
            "chapters": build_sections(document),
            "common": find_common_errors(document),
            "guides": load_guides(document["servers"][0]["url"]),
            "languages": LANGUAGES,
            "lead": document["info"]["description"].partition("\n")[0],
            "page_title": lazy_gettext("API docs"),
            "q": "",
            "section": None,
        }

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
