"""Routes are analysed on their first request, without a visible difference."""

import pytest
from fastapi import APIRouter, FastAPI
from httpx import ASGITransport, AsyncClient

from refract.web.routing import ApiRoute


async def test_a_route_is_analysed_when_somebody_first_asks_for_it() -> None:
    router = APIRouter(route_class=ApiRoute)

    @router.get("/number/{number}")
    async def say(number: int, *, loud: bool = False) -> dict[str, int | bool]:
        return {"number": number, "loud": loud}

    @router.post("/number/{number}")
    async def never(number: int) -> int:
        return number

    small = FastAPI()
    small.router.routes.extend(router.routes)
    asked, other = router.routes
    async with AsyncClient(transport=ASGITransport(small), base_url="http://test") as client:
        assert "dependant" not in vars(asked)
        assert (await client.get("/number/5?loud=yes")).json() == {"number": 5, "loud": True}
        assert (await client.get("/number/five")).status_code == 422
        assert (await client.put("/number/5")).status_code == 405
    assert ("dependant" in vars(asked), "dependant" in vars(other)) == (True, False)
    for route in (asked, other):
        with pytest.raises(AttributeError, match="no_such_thing"):
            _ = route.no_such_thing  # type: ignore[attr-defined]
