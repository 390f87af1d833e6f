"""Dependencies of routes."""

import inspect
from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from refract.app import WebNode
from tests.client import on_sqlite

pytestmark = on_sqlite


def _iter_calls(dependant: Dependant) -> Iterator[object]:
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from _iter_calls(dependency)


async def test_dependencies_run_on_the_event_loop(app: WebNode) -> None:
    """One that is no coroutine would cost each request a journey to a thread."""
    routes = [context.original_route for context in iter_route_contexts(app.api.routes)]
    calls = {
        call
        for route in routes
        if isinstance(route, APIRoute)
        for call in _iter_calls(route.dependant)
    }

    assert calls
    for call in calls:
        assert inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call), call
