"""Routing and reserved words are one set."""

from fastapi import APIRouter
from httpx import AsyncClient

from refract.app import Application, reserved_words, routes_of
from refract.names.grammar import SEED_WORDS
from tests.client import on_sqlite

pytestmark = on_sqlite


async def test_the_first_segment_of_every_included_route_is_reserved(app: Application) -> None:
    later = APIRouter(prefix="/Zebra")
    later.add_api_route("/stripes", lambda: None)
    app.api.include_router(later)

    words = reserved_words(app.api)
    assert "zebra" in words
    assert "ZEBRA" in words
    assert all(word in words for word in SEED_WORDS)


async def test_every_route_is_found_once_with_its_method(app: Application) -> None:
    routes = routes_of(app.api)

    assert ("DELETE", "/api/v1/keys/{key_id}") in routes
    assert ("GET", "/health") in routes
    assert len(routes) == len(set(routes))


async def test_a_path_that_is_written_out_is_no_parameter_whatever_the_method(client: AsyncClient) -> None:
    response = await client.get("/api/v1/links/bulk")

    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
