"""The people in tests of domains, and an administrator's browser."""

from collections.abc import AsyncIterator

import pytest

from refract.app import WebNode
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import by_cookie
from tests.people import Headers, ada, as_ada, as_bob, as_root, bob, root

__all__ = ["ada", "as_ada", "as_bob", "as_root", "bob", "root"]


@pytest.fixture
async def browser(rt: Runtime, root: User) -> Headers:
    """Headers of a browser in which an administrator has signed in."""
    async with rt.db.write() as session:
        return by_cookie(rt, await make.cookie(session, rt, root)) | {"Accept": "text/html"}


@pytest.fixture
async def node(app: WebNode) -> AsyncIterator[WebNode]:
    """The program with its redirect engine, which knows the domains of the database."""
    assert app.engine is not None
    async with app.engine.run():
        yield app
