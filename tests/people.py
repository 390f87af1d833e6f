"""Fixtures for tests that need people."""

import pytest

from refract.core.runtime import Runtime
from refract.identity.models import User, UserRole
from tests import make


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
