"""Users with links to count, and roll-ups without packs."""

import pytest

from refract.clicks.rollups import pack_updates
from tests.people import ada, bob, cleo, root

__all__ = ["ada", "bob", "cleo", "no_packs", "root"]


@pytest.fixture
def no_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every target rows of all grains, as if it had many clicks."""
    monkeypatch.setattr(pack_updates, "MAX_PACK_BYTES", 0)
