"""Pages are rendered in a thread, in the language of the request, when they are sent."""

import gzip
import threading
from collections.abc import Callable
from types import SimpleNamespace

from httpx import ASGITransport, AsyncClient, Response
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from refract.core.runtime import Runtime
from refract.identity.responses import PageResponse
from refract.web.i18n import choose_locale, current_locale

GERMAN = choose_locale("de", "")


async def answer(rt: Runtime, render: Callable[[], str], **headers: str) -> Response:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request({**scope, "app": SimpleNamespace(state=SimpleNamespace(rt=rt))})
        await PageResponse(request, render, 201, GERMAN)(scope, receive, send)

    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
        return await client.get("/", headers={"accept-encoding": "identity", **headers})


async def test_it_is_rendered_in_a_thread_in_its_language(rt: Runtime) -> None:
    response = await answer(rt, lambda: f"{threading.get_ident()} {current_locale().tag}")

    ident, tag = response.text.split()
    assert (int(ident) != threading.get_ident(), tag) == (True, "de")
    assert response.status_code == 201
    assert response.headers["content-language"] == "de"
    assert response.headers["content-length"] == str(len(response.content))
    assert "content-encoding" not in response.headers


async def test_only_a_large_page_is_compressed_and_only_where_it_is_accepted(rt: Runtime) -> None:
    large = "word " * 400
    small = await answer(rt, lambda: "word", **{"accept-encoding": "gzip"})
    packed = await answer(rt, lambda: large, **{"accept-encoding": "gzip"})
    plain = await answer(rt, lambda: large)

    assert "content-encoding" not in small.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-length"] == str(len(gzip.compress(large.encode(), 5, mtime=0)))
    assert packed.text == plain.text == large
    assert "content-encoding" not in plain.headers
