"""An installation with rows in every table that can be filled generically."""

import pytest

from proofs.harness.filling import Filler, fill_archive
from refract.core.runtime import Runtime
from refract.migrations.tables import metadata


@pytest.fixture
async def full(rt: Runtime) -> Runtime:
    """Every kind of value, in nearly every table."""
    filled = await Filler(rt.db).fill()
    await fill_archive(rt.db, rt.settings.effective_archive_dir)
    assert len(filled) >= 0.8 * len(metadata.tables), sorted(set(metadata.tables) - filled)
    return rt
