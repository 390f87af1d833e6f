"""A runtime by the real clock, for providers that have a clock of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from refract.core.clock import SystemClock
from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.core.settings.issuers import Issuer
from tests.conftest import make_settings


@asynccontextmanager
async def runtime_by_real_clock(
    database: str, home: Path, issuer: Issuer
) -> AsyncIterator[Runtime]:
    """Open a runtime with one issuer, called `work`."""
    settings = make_settings(home / "data", database_url=database, issuers={"work": issuer})
    settings.data_dir.mkdir(mode=0o700, exist_ok=True)
    db, clock = Database(settings), SystemClock()
    runtime = Runtime(
        settings=settings,
        db=db,
        clock=clock,
        ids=SnowflakeGenerator(1, clock),
        secret=Secret(b"s" * 40),
    )
    try:
        yield runtime
    finally:
        await runtime.close()
        await db.close()
