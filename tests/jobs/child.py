"""A worker in a separate process, which SIGTERM ends.

python -m tests.jobs.child DATABASE_URL DATA_DIR LEASE_SECONDS POLL_SECONDS CONCURRENCY
"""

import asyncio
import signal
import sys
from pathlib import Path

from refract.core.runtime import open_runtime
from refract.core.settings.model import Settings
from refract.jobs.handlers import HandlerRegistry
from refract.jobs.worker import JobWorker
from tests.jobs.work import HANDLERS


async def main(url: str, data_dir: str, lease: str, poll: str, concurrency: str) -> None:
    settings = Settings(
        data_dir=Path(data_dir),
        database_url=url,
        secret_key="s" * 40,  # type: ignore[arg-type]
        job_lease_seconds=float(lease),
        job_poll_seconds=float(poll),
        job_concurrency=int(concurrency),
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with open_runtime(settings) as rt:
        worker = JobWorker(rt, HandlerRegistry.from_functions(HANDLERS))
        await worker.start()
        print("ready", flush=True)
        await stop.wait()
        await worker.stop(grace=0.5)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
