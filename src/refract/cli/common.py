"""What commands share: options, and a runtime on the same data as a running server."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from refract import migrations
from refract.core.db import Database
from refract.core.log import configure_logging
from refract.core.runtime import Runtime, running
from refract.core.settings import Settings, load_settings, prepare_data_dir

Result = TypeVar("Result")
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="The directory with the data. [env: REFRACT_DATA_DIR]", show_default="data")
]


def command_settings(data_dir: Path | None, **given: object) -> Settings:
    """Settings for a command that is not the server: its log stays quiet unless something is wrong."""
    settings = load_settings(data_dir=data_dir, **given)
    prepare_data_dir(settings.data_dir)
    configure_logging(settings.model_copy(update={"log_level": "warning"}))
    return settings


def on_data(settings: Settings, work: Callable[[Runtime], Awaitable[Result]]) -> Result:
    """Run some work on the data of this installation, whether or not a server is running on it."""

    async def run() -> Result:
        db = Database(settings)
        try:
            await migrations.upgrade(db)
        finally:
            await db.close()
        async with running(settings) as rt:
            return await work(rt)

    return asyncio.run(run())
