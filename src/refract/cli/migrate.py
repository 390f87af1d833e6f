"""`refract migrate`."""

import asyncio

import typer

from refract import migrations
from refract.cli.common import command_settings
from refract.cli.options import DataDir
from refract.core.db import Database


def migrate(data_dir: DataDir = None) -> None:
    """Bring the database to this version's schema. `serve` does so by itself."""
    settings = command_settings(data_dir)

    async def run() -> list[str]:
        db = Database(settings)
        try:
            return await migrations.upgrade(db)
        finally:
            await db.close()

    ran = asyncio.run(run())
    typer.echo(
        f"Ran {len(ran)} steps; the schema is at {migrations.head()}." if ran else f"The schema is up to date ({migrations.head()})."
    )
