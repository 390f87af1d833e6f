"""Unknown query parameters (SPEC 20): 422 under `/api/v1`, ignored on pages and short links."""

import httpx
import pytest
from fastapi import params
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import iter_route_contexts

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.web.routing import ApiRoute
from tests import make
from tests.client import by_key, on_sqlite
from tests.people import ada

__all__ = ["ada"]
pytestmark = on_sqlite


async def test_the_api_names_parameters_it_does_not_know(
    rt: Runtime, client: httpx.AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        headers = by_key(await make.key(session, rt, ada))

    answer = await client.get(
        "/api/v1/links?limit=5&sort_by=clicks&utm_source=x&sort_by=y", headers=headers
    )

    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_FAILED")
    assert [wrong["field"] for wrong in answer.json()["errors"]] == ["sort_by", "utm_source"]
    assert (await client.get("/api/v1/links?limit=5", headers=headers)).status_code == 200
    assert (await client.get("/api/v1/links?nonsense=1")).status_code in (401, 422)


async def test_pages_and_short_links_do_not_mind(
    rt: Runtime, client: httpx.AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, name="here")

    for path in ("/", "/health", "/auth/sign-in", "/robots.txt", "/api/docs", "/here+"):
        assert (await client.get(f"{path}?fbclid=1&utm_source=x")).status_code in (200, 303), path
    assert (await client.get("/here?fbclid=1")).status_code == 302


async def test_no_endpoint_of_the_api_takes_parameters_as_a_model(app: WebNode) -> None:
    """The route class couldn't know their names."""
    routes = [route.original_route for route in iter_route_contexts(app.api.routes)]
    fields = [
        field
        for route in routes
        if isinstance(route, ApiRoute)
        for field in get_flat_params(route.dependant)
    ]

    assert fields
    for field in fields:
        if isinstance(field.field_info, params.Query):
            assert not hasattr(field.field_info.annotation, "model_fields"), field.alias


@pytest.mark.parametrize("query", ["", "?edition=1"])
async def test_parameters_that_are_known_are_heard(client: httpx.AsyncClient, query: str) -> None:
    assert (await client.get(f"/api/v1/public/lists/nothing{query}")).status_code == 404
