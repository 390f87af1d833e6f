"""Lag of the event loop, measured by the delay of a timer."""

import asyncio

from refract.core.runtime import Runtime

PROBE_INTERVAL = 0.2
WINDOW_SECONDS = 60.0


class LoopLagProbe:
    """The delay of a timer on this process's event loop.

    As a histogram, and as the longest of the last one to two minutes. A timer is delayed by the
    callbacks before it, so the longest delay is that of the longest callback that ran while the
    timer was due.
    """

    def __init__(self, rt: Runtime) -> None:
        self._lag = rt.metrics.histogram(
            "refract_loop_lag_seconds", "How late timers of the event loop are"
        )
        longest = rt.metrics.gauge(
            "refract_loop_longest_seconds",
            "The longest delay of the event loop in the last one to two minutes",
        )
        longest.set_function(lambda: max(self._current, self._previous))
        self._current = self._previous = 0.0
        self._window_ends = 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PROBE_INTERVAL
            await asyncio.sleep(PROBE_INTERVAL)
            self.record(max(0.0, loop.time() - due), loop.time())

    def record(self, lag: float, now: float) -> None:
        """Record one delay."""
        if now >= self._window_ends:
            self._previous, self._current, self._window_ends = (
                self._current,
                0.0,
                now + WINDOW_SECONDS,
            )
        self._current = max(self._current, lag)
        self._lag.observe(lag)
