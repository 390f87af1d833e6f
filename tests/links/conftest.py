"""The people in tests of links, and a runtime that checks destinations with a fake service."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic import SecretStr

from refract.core.runtime import Runtime
from tests.links.safe_browsing import FakeSafeBrowsing, safe_browsing
from tests.people import ada, as_ada, as_bob, as_root, bob, cleo, root

__all__ = ["ada", "as_ada", "as_bob", "as_root", "bob", "cleo", "root"]


@pytest.fixture
async def fake() -> AsyncIterator[FakeSafeBrowsing]:
    async with safe_browsing() as server:
        yield server


@pytest.fixture
async def ours(rt: Runtime, fake: FakeSafeBrowsing) -> AsyncIterator[Runtime]:
    """Return a runtime that calls the fake service."""
    settings = rt.settings.model_copy(
        update={"safe_browsing_key": SecretStr("key"), "safe_browsing_url": fake.url}
    )
    runtime = replace(rt, settings=settings)
    yield runtime
    await runtime.close()
