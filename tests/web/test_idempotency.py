"""Only successful responses are stored for an Idempotency-Key."""

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import func, select
from starlette.requests import Request
from starlette.responses import Response

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.web.idempotency import MAX_STORED_BYTES, ResponseTooLong, run_once
from refract.web.models import StoredResponse
from tests import make


def asked(rt: Runtime) -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    app = SimpleNamespace(state=SimpleNamespace(rt=rt))
    headers = [(b"idempotency-key", b"once"), (b"host", b"go.test")]
    return Request(
        {
            "type": "http",
            "method": "POST",
            "path": "/",
            "query_string": b"",
            "headers": headers,
            "app": app,
        },
        receive,
    )


@pytest.mark.parametrize(("status", "kept"), [(201, 1), (409, 0), (303, 0)])
async def test_an_answer_is_kept_with_its_change_or_neither_is(
    rt: Runtime, status: int, kept: int
) -> None:
    async def endpoint(_: Request) -> Response:
        async with rt.db.write() as session:
            await make.person(session, rt, "ada")
        return Response("{}", status)

    answer = await run_once(asked(rt), endpoint, frozenset())

    assert answer.status_code == status
    async with rt.db.read() as session:
        for model in (User, StoredResponse):
            assert await session.scalar(select(func.count()).select_from(model)) == kept


async def test_a_long_answer_is_not_kept_and_its_change_is_not_repeated(rt: Runtime) -> None:
    """Regression: responses of any size were stored."""

    async def endpoint(_: Request) -> Response:
        async with rt.db.write() as session:
            await make.person(session, rt, "ada")
        return Response("x" * (MAX_STORED_BYTES + 1), 201)

    assert (await run_once(asked(rt), endpoint, frozenset())).status_code == 201
    with pytest.raises(ResponseTooLong):
        await run_once(asked(rt), endpoint, frozenset())

    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(User)) == 1
        assert (await session.scalars(select(StoredResponse.body))).one() is None
