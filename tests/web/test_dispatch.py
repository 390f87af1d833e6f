"""Routing, and the words that it reserves."""

from fastapi import APIRouter
from httpx import AsyncClient

from refract.app import WebNode, list_routes
from refract.compat.app import DIALECTS
from refract.names.grammar import ROUTE_WORDS
from tests.client import on_sqlite

pytestmark = on_sqlite


async def test_the_route_words_are_all_first_segments_of_routes_and_dialects(app: WebNode) -> None:
    """The constant is all that names, commands and nodes without the web app know of the routes."""
    firsts = {path.split("/")[1] for _, path in list_routes(app.api)}
    firsts |= {root.split("/")[1] for dialect in DIALECTS for root, _ in dialect.roots}

    assert firsts - {""} == ROUTE_WORDS


async def test_a_route_of_a_router_that_is_included_later_is_found(app: WebNode) -> None:
    later = APIRouter(prefix="/Zebra")
    later.add_api_route("/stripes", lambda: None)
    app.api.include_router(later)

    assert ("GET", "/Zebra/stripes") in list_routes(app.api)


async def test_every_route_is_found_once_with_its_method(app: WebNode) -> None:
    routes = list_routes(app.api)

    assert ("DELETE", "/api/v1/keys/{key_id}") in routes
    assert ("GET", "/health") in routes
    assert len(routes) == len(set(routes))


async def test_a_path_that_is_written_out_is_no_parameter_whatever_the_method(
    client: AsyncClient,
) -> None:
    response = await client.get("/api/v1/links/bulk")

    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
