"""For tests whose program may fetch from this machine.

Import both fixtures and name them in `__all__`.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from refract.core.settings.model import Settings
from tests.conftest import make_settings
from tests.lists.pages_server import Site, site


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    """Loopback counts as the wide web."""
    return make_settings(tmp_path / "data", database_url=database, fetch_allow="127.0.0.1/32")


@pytest.fixture
async def web() -> AsyncIterator[Site]:
    """The wide web: one server, with whatever pages a test gives it."""
    async with site() as here:
        yield here
