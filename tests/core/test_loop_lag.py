"""Every role measures the lag of its event loop."""

import asyncio
import time

import pytest

from refract.core.loop_lag import PROBE_INTERVAL, WINDOW_SECONDS, LoopLagProbe
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.server.node import ServerNode
from tests.client import on_sqlite

pytestmark = on_sqlite


def value(rt: Runtime, name: str) -> float:
    return rt.metrics.registry.get_sample_value(name) or 0.0


async def test_a_blocked_loop_is_seen(rt: Runtime) -> None:
    probe = asyncio.create_task(LoopLagProbe(rt).run())
    while not value(rt, "refract_loop_lag_seconds_count"):  # noqa: ASYNC110 - has no event
        await asyncio.sleep(0.01)

    time.sleep(2 * PROBE_INTERVAL)  # noqa: ASYNC251 - to be noticed

    measured = value(rt, "refract_loop_lag_seconds_count")
    while value(rt, "refract_loop_lag_seconds_count") == measured:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    probe.cancel()
    assert value(rt, "refract_loop_longest_seconds") >= PROBE_INTERVAL


def test_the_longest_delay_is_forgotten_after_two_minutes(rt: Runtime) -> None:
    probe = LoopLagProbe(rt)
    for lag, now in ((0.5, 1.0), (0.1, 2.0), (0.2, WINDOW_SECONDS + 1.0)):
        probe.record(lag, now)
    assert value(rt, "refract_loop_longest_seconds") == 0.5
    probe.record(0.0, 2 * WINDOW_SECONDS + 1.0)
    assert value(rt, "refract_loop_longest_seconds") == 0.2
    assert value(rt, "refract_loop_lag_seconds_count") == 4


@pytest.mark.parametrize("role", ["all", "web", "redirect", "worker", "ingest"])
async def test_every_role_has_one(rt: Runtime, role: str) -> None:
    rt.settings = Settings(**{**rt.settings.model_dump(), "role": role})
    node = ServerNode(rt)
    async with node.run_essentials():
        while not value(rt, "refract_loop_lag_seconds_count"):  # noqa: ASYNC110 - has no event
            await asyncio.sleep(0.01)
    if node.engine is not None:
        node.engine.spool.close()
