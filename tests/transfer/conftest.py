"""Installations to back up and to restore into."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proofs.harness.filling import Filler, fill_archive
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.migrations.tables import metadata
from tests.conftest import make_settings


@pytest.fixture
async def full(rt: Runtime) -> Runtime:
    """Every kind of value, in nearly every table."""
    filled = await Filler(rt.db).fill()
    await fill_archive(rt.db, rt.settings.effective_archive_dir)
    assert len(filled) >= 0.8 * len(metadata.tables), sorted(set(metadata.tables) - filled)
    return rt


@pytest.fixture
async def elsewhere(tmp_path: Path) -> AsyncIterator[tuple[Settings, Database]]:
    """An empty installation."""
    settings = make_settings(tmp_path / "elsewhere")
    settings.data_dir.mkdir()
    db = Database(settings)
    yield settings, db
    await db.close()
