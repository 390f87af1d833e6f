"""How much slower this machine is, now, than the one that the bars for CPU time were set on.

CPU time isn't independent of the machine: clock rates differ, and a core that two guests share
charges each for the other. So a fixed piece of work is timed beside what is measured.
"""

import asyncio
import time
from dataclasses import dataclass, field

REFERENCE_SECONDS = 0.0025
"""CPU seconds of the fixed work on the machine that the bars were set on."""
_STEPS = 100_000
_PAUSE = 0.2


@dataclass
class Slowness:
    """Samples of the CPU time that the fixed work takes, from begin to end of a measurement."""

    samples: list[float] = field(default_factory=list)

    async def sample(self) -> None:
        """Take samples until cancelled, each in a thread of its own."""
        while True:
            self.samples.append(await asyncio.to_thread(_time_work))
            await asyncio.sleep(_PAUSE)

    @property
    def factor(self) -> float:
        """The slowest sample against the reference; never below 1, so a fast machine gains nothing.

        The slowest, since a bar for the longest callback is compared with it.
        """
        return max(1.0, max(self.samples, default=0.0) / REFERENCE_SECONDS)


def _time_work() -> float:
    began = time.thread_time()
    total = 0
    for number in range(_STEPS):
        total += number
    return time.thread_time() - began
