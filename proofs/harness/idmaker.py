"""A process that makes ids as fast as it may while its clock jumps.

`python -m proofs.harness.idmaker DATA_DIR URL SEED SECONDS FILE`.
"""

import asyncio
import os
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from refract.core.clock import SystemClock
from refract.core.db.session import Database
from refract.core.errors import Unavailable
from refract.core.ids import WorkerIdLost
from refract.core.settings.model import Settings
from refract.core.worker_ids import lease_ids

STEPS = (-3600.0, -30.0, -1.0, -0.01, 0.01, 1.0, 30.0)
"""Seconds by which a clock may jump.

Forward never so far that the ids of an hour ago would have to be waited for.
"""


class Jumping(SystemClock):
    """A clock that somebody keeps setting."""

    def __init__(self) -> None:
        self.off = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self.off, UTC)

    def now_ns(self) -> int:
        return time.time_ns() + int(self.off * 1e9)


async def main(words: list[str]) -> None:
    place, url, seed, seconds, file = words
    chance, clock = random.Random(int(seed)), Jumping()
    db = Database(Settings(data_dir=Path(place), database_url=url or None))
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    until = time.monotonic() + float(seconds)
    try:
        while time.monotonic() < until:
            try:
                async with lease_ids(db, clock) as ids:
                    while time.monotonic() < until:
                        made = [ids.next_id() for _ in range(chance.randint(1, 200))]
                        os.write(out, "".join(f"{number}\n" for number in made).encode())
                        if chance.random() < 0.02:
                            clock.off = chance.choice(STEPS) if chance.random() < 0.7 else 0.0
                        await asyncio.sleep(chance.uniform(0, 0.01))
            except (
                Unavailable,
                WorkerIdLost,
            ):  # a clock that went back refuses; the next lease begins behind it
                clock.off = 0.0
                await asyncio.sleep(0.05)
    finally:
        await db.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
