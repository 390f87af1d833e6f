"""A program with a database of its own, for benches that call it without HTTP."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from sqlalchemy import make_url, text

from refract import migrations
from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.core.settings.model import Settings


@asynccontextmanager
async def own_runtime(dialect: str, bench: str, now: datetime) -> AsyncIterator[Runtime]:
    """A runtime with an empty database and data directory; its time stands still."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            data_dir=Path(folder),
            database_url=await own_database(dialect, Path(folder), bench),
            secret_key="s" * 40,  # type: ignore[arg-type]
        )
        db, clock = Database(settings), ManualClock(now)
        await migrations.upgrade(db)
        rt = Runtime(
            settings=settings,
            db=db,
            clock=clock,
            ids=SnowflakeGenerator(1, clock, wait=clock.advance),
            secret=Secret(b"s" * 40),
        )
        try:
            yield rt
        finally:
            await rt.close()
            await db.close()


async def own_database(dialect: str, folder: Path, bench: str) -> str:
    """The URL of a new database of this bench's own."""
    if dialect == "sqlite":
        return f"sqlite:///{folder / 'bench.db'}"
    server = os.environ[f"REFRACT_TEST_{dialect.upper()}_URL"]
    admin = Database(Settings(data_dir=folder, database_url=server))
    name = f"bench_{bench}_{os.getpid()}"
    async with admin.engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await autocommit.execute(text(f"DROP DATABASE IF EXISTS {name}"))
        await autocommit.execute(text(f"CREATE DATABASE {name}"))
    await admin.close()
    return make_url(server).set(database=name).render_as_string(hide_password=False)
