"""Users of the library's tests, and what they save."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.jobs.worker import JobWorker
from refract.library.queries.items import get_own_item
from refract.library.queries.serializers import serialize_item
from refract.library.schemas import ItemCreate, ItemOut
from refract.library.service import capture_item
from refract.registry import build_worker
from tests import make
from tests.client import by_key
from tests.conftest import make_settings
from tests.library.http import Model, Site, a_model, a_site
from tests.people import ada, bob, root

__all__ = ["ada", "bob", "root"]

Save = Callable[..., Awaitable[ItemOut]]
Look = Callable[[ItemOut], Awaitable[ItemOut]]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as found:
        yield found


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with a_model() as found:
        yield found


@pytest.fixture
def given() -> dict[str, Any]:
    """Return the test's own settings, by `@pytest.mark.parametrize("given", …)`."""
    return {}


@pytest.fixture
def settings(
    database: str, tmp_path: Path, given: dict[str, Any], request: pytest.FixtureRequest
) -> Settings:
    """Allow pages of this machine to be fetched; a test that needs `model` has one configured."""
    if "model" in request.fixturenames:
        model: Model = request.getfixturevalue("model")
        given = {"model_url": f"{model.server.url}/v1", "model_name": "tiny", **given}
    return make_settings(
        tmp_path / "data", database_url=database, fetch_allow="127.0.0.0/8", **given
    )


@pytest.fixture
async def rt(rt: Runtime) -> AsyncIterator[Runtime]:
    yield rt
    await rt.close()


@pytest.fixture
def work(rt: Runtime) -> JobWorker:
    """Return a worker; `await work.run_due()` runs all jobs that are due."""
    return build_worker(rt)


@pytest.fixture
def save(rt: Runtime, ada: User) -> Save:
    async def saved(text: str, by: User | None = None, **more: Any) -> ItemOut:
        async with rt.db.write() as session:
            made = await capture_item(session, rt, by or ada, ItemCreate(text=text, **more))
            return await serialize_item(session, made.item)

    return saved


@pytest.fixture
def look(rt: Runtime, ada: User) -> Look:
    async def looked(item: ItemOut) -> ItemOut:
        async with rt.db.read() as session:
            return await serialize_item(session, await get_own_item(session, ada.id, item.id))

    return looked


@pytest.fixture
async def as_ada(rt: Runtime, ada: User, client: AsyncClient) -> AsyncClient:
    async with rt.db.write() as session:
        client.headers.update(by_key(await make.key(session, rt, ada)))
    return client
