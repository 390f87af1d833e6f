"""The people in tests of teams."""

from pathlib import Path

import pytest

from refract.core.settings.model import Settings
from tests.conftest import make_settings
from tests.people import ada, as_ada, as_bob, as_root, bob, cleo, root

__all__ = ["ada", "as_ada", "as_bob", "as_root", "bob", "cleo", "root"]


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    """Everyone may create teams."""
    return make_settings(tmp_path / "data", database_url=database, team_creation="everyone")
