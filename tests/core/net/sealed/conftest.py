"""These tests are run by `test_sealed.py`, in a network namespace without a network."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import uvloop

from refract.core.net import AddressGuard, PageFetcher
from tests.core.net.sealed.internet import Internet, Names, good_names, internet
from tests.core.net.sealed.namespace import seal

_connects: list[str] = []


def _note_connects(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect":
        address = arguments[1]
        _connects.append(str(address[0]) if isinstance(address, tuple) else str(address))


@pytest.fixture(scope="session", autouse=True)
def _sealed() -> None:
    assert os.environ.get("REFRACT_TEST_SEALED")
    seal()
    sys.addaudithook(_note_connects)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Other tests run on asyncio, the server on uvloop: sockets must behave alike on both."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def connects() -> Iterator[list[str]]:
    """Every address that this process tried to connect to, whether or not it was served."""
    _connects.clear()
    yield _connects
    _connects.clear()


@pytest.fixture
async def net() -> AsyncIterator[Internet]:
    async with internet() as here:
        yield here


@pytest.fixture
def names() -> Names:
    return good_names()


@pytest.fixture
def fetcher(names: Names) -> PageFetcher:
    """As in production, except for the names."""
    return PageFetcher(AddressGuard(), resolve=names)
