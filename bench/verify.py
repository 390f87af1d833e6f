"""How much memory does `refract verify` need for ten million clicks?

    python -m bench verify [--clicks N]

The clicks are those of `bench ingest`, over 5,000 links, stored in SQLite by the ingester. The bar
is 150 MB, whatever their number.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from bench._common import busy, table, write
from bench.growth import measure_verify
from bench.ingest import Spread, fill
from refract import migrations
from refract.clicks.ingest.ingester import Ingester
from refract.core.db.session import Database
from refract.core.runtime import open_runtime
from refract.core.settings.model import Settings

LINKS = 5_000
MAX_MB = 150.0
FULL_CLICKS = 10_000_000
CLICKS_PER_SPOOL = 1_000_000


async def store(settings: Settings, clicks: int) -> None:
    """Store clicks, a spool at a time."""
    db = Database(settings)
    await migrations.upgrade(db)
    await db.close()
    async with open_runtime(settings) as rt:
        for number, begin in enumerate(range(0, clicks, CLICKS_PER_SPOOL)):
            root = settings.data_dir / f"spool{number}"
            fill(root, min(CLICKS_PER_SPOOL, clicks - begin), Spread(LINKS), seed=number)
            await Ingester(rt, root).apply_all()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bench verify", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--clicks", type=int, default=FULL_CLICKS)
    options = parser.parse_args(arguments)
    load_before = busy()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(store(Settings(data_dir=Path(folder)), options.clicks))
        found = measure_verify(Path(folder))
    holds = found["resident_mb"] <= MAX_MB
    table(
        ["clicks", "CPU s", "MB"],
        [[f"{options.clicks:,}", f"{found['cpu_s']}", f"{found['resident_mb']}"]],
    )
    print(f"bar: ≤ {MAX_MB:.0f} MB: {'holds' if holds else 'MISSED'}")
    if options.clicks == FULL_CLICKS:
        write("verify", "memory of verify", load_before, clicks=options.clicks, found=found)
    return 0 if holds else 1
