"""Clicks of the demo: believable visits since each link was made, stored by the same code that stores real ones."""

import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from refract.analytics.closing import close_hours
from refract.analytics.generator import Traffic, Visit, visits
from refract.analytics.ingest import Ingester
from refract.analytics.spool import Spool
from refract.core.runtime import Runtime

_TURN = 256


async def fill_clicks(rt: Runtime, made: Mapping[int, tuple[datetime, datetime, float]]) -> int:
    """For each link when it was made, until when it worked, and how many people follow it on an ordinary day."""
    every: list[Visit] = []
    for link_id, (begin, end, daily) in made.items():
        wanted = int(daily * max(1.0, (end - begin) / timedelta(days=1)))
        if wanted and begin < end:
            every += visits(Traffic([link_id], begin, end, wanted, seed=zlib.crc32(str(link_id).encode())))
    every.sort(key=lambda visit: visit.time_ns)
    spool = Spool(rt.settings.effective_spool_dir, node="demo")
    try:
        for start in range(0, len(every), _TURN):
            spool.append([visit.frame for visit in every[start : start + _TURN]])
    finally:
        spool.close()
    await Ingester(rt).apply_all()
    while await close_hours(rt):
        pass
    return len(every)
