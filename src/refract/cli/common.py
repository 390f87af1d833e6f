"""What commands share: options, and a runtime on the same data as a running server."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from refract import migrations
from refract.core.db import Database
from refract.core.errors import Invalid
from refract.core.log import configure_logging
from refract.core.runtime import Runtime, running
from refract.core.settings import Settings, load_settings, prepare_data_dir

Result = TypeVar("Result")
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="The directory with the data. [env: REFRACT_DATA_DIR]",
        show_default="data",
        readable=False,  # we look ourselves, and say what to do
    ),
]
Body = TypeVar("Body", bound=BaseModel)


class BadOption(Invalid):
    """--{name} does not fit: {why}"""


def checked(model: type[Body], **given: object) -> Body:
    """The options as the API would take them, or one sentence about the first that does not fit."""
    try:
        return model(**given)
    except ValidationError as wrong:
        first = wrong.errors()[0]
        why = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise BadOption(name=str(first["loc"][0]).replace("_", "-"), why=f"{why}.") from wrong


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
