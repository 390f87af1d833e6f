"""The model tier against a real model (135 million parameters) behind a real server.

Its prose is weak, its protocol is not.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from refract.core.runtime import Runtime
from refract.jobs.worker import JobWorker
from refract.library.models import LedgerEntry
from tests.client import on_sqlite
from tests.library.conftest import Look, Save
from tests.services_plugin import ABSENT

ROOT = Path(__file__).parents[2]
STEAM = (
    "A steam engine burns coal to boil water. The steam pushes a piston, and the condenser saves"
    " three quarters of the coal."
)


def _directory() -> Path:
    found = Path(os.environ.get("REFRACT_TEST_MODEL_DIR") or ROOT / ".venv/model")
    if not (found / ".fetched").exists():
        pytest.skip(f"{ABSENT}a small model, which `make test` fetches into {found.name}")
    return found


@pytest.fixture(scope="session")
def model_address() -> Iterator[str]:
    program = [sys.executable, str(Path(__file__).with_name("model_server.py")), str(_directory())]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield next(line.split()[1] for line in server.stdout if line.startswith("listening"))
        finally:
            server.stdin.close()


@pytest.fixture
def given(model_address: str) -> dict[str, Any]:
    return {
        "model_url": f"{model_address}/v1",
        "model_name": "smollm2",
        "model_timeout_seconds": 300,
    }


@on_sqlite
async def test_a_real_model_describes_an_item(
    rt: Runtime, work: JobWorker, save: Save, look: Look
) -> None:
    await save("Something older.", enrich=False, new_tags=["engines"])
    seen = await save(STEAM)
    await work.run_due_jobs()
    for _ in range(2):  # what it says is drawn by lot, and now and then it says nothing of use
        seen = await look(seen)
        assert seen.status == "READY_TO_CONFIRM"
        if seen.enrichment == "SYSTEM":
            assert seen.note == "MODEL_NOT_UNDERSTOOD"
            seen = await save(STEAM)
            await work.run_due_jobs()
    seen = await look(seen)

    assert (seen.enrichment, seen.note) == ("AI", None)
    assert seen.title
    assert len(seen.title) <= 100
    assert seen.summary
    assert len(seen.summary) <= 500
    assert any(one.source == "AI" for one in seen.suggestions)
    async with rt.db.read() as session:
        assert set(await session.scalars(select(LedgerEntry.model))) == {"smollm2"}
