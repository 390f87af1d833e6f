"""A process that has just begun knows nothing: the links that are used most are read before they are asked for."""

import asyncio
import contextlib
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from refract.core.direct import Direct
from refract.core.errors import Unavailable
from refract.core.ids import encode
from refract.redirect.resolve import Leads, Visitor, resolve
from refract.redirect.wish import read_wish

if TYPE_CHECKING:
    from collections.abc import Callable

    from refract.redirect.engine import Engine

MOST = 1000
BREATH = 20
_HOT = "SELECT link_id FROM link_totals ORDER BY total_clicks DESC LIMIT ?"
_NAMES = "SELECT name FROM names WHERE kind = 'link' AND target_id = ?"


async def warm_up(engine: "Engine", reader: Direct, now: "Callable[[], datetime]", most: int) -> int:
    """Have the most used links ready under their names, or their codes; the answer is how many addresses. Ends early without a database."""
    filled = 0
    with contextlib.suppress(Unavailable):
        for number, (link_id,) in enumerate(await reader.rows(_HOT, min(most, MOST))):
            names = [str(row[0]) for row in await reader.rows(_NAMES, link_id)] or [encode(link_id)]
            for name in names:
                filled += await _warm(engine, name, now)
            if number % BREATH == 0:
                await asyncio.sleep(0.001)  # those who ask meanwhile come first
    structlog.get_logger("refract.warmup").debug("warmed_up", addresses=filled)
    return filled


async def _warm(engine: "Engine", name: str, now: "Callable[[], datetime]") -> bool:
    path = b"/" + name.encode()
    outcome = await resolve(engine.tiers, read_wish(path), _nobody, now)
    if not isinstance(outcome, Leads) or not outcome.found.is_cacheable:
        return False
    engine.fill(path, outcome.found, outcome.href)
    return True


async def _nobody() -> Visitor | None:
    return None
