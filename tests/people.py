"""Fixtures for tests that need people."""

import pytest

from refract.core.runtime import Runtime
from refract.identity.models import User, UserRole
from tests import make
from tests.client import by_key

Headers = dict[str, str]


async def _person(rt: Runtime, name: str, role: UserRole = UserRole.USER) -> User:
    async with rt.db.write() as session:
        return await make.person(session, rt, name, role=role)


@pytest.fixture
async def ada(rt: Runtime) -> User:
    return await _person(rt, "ada")


@pytest.fixture
async def bob(rt: Runtime) -> User:
    return await _person(rt, "bob")


@pytest.fixture
async def cleo(rt: Runtime) -> User:
    return await _person(rt, "cleo")


@pytest.fixture
async def root(rt: Runtime) -> User:
    """An administrator."""
    return await _person(rt, "root", UserRole.ADMIN)


@pytest.fixture
async def as_ada(rt: Runtime, ada: User) -> Headers:
    """Headers with a key of Ada's."""
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, ada))


@pytest.fixture
async def as_bob(rt: Runtime, bob: User) -> Headers:
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, bob))


@pytest.fixture
async def as_root(rt: Runtime, root: User) -> Headers:
    """Headers with a key that may do everything an administrator can."""
    async with rt.db.write() as session:
        return by_key(await make.key(session, rt, root, *make.ALL))
