"""Links at the moment of their expiry.

Who asks afterwards must not be redirected, by whichever tier.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from proofs.harness.ears import Ear
from proofs.harness.stage import Planted
from proofs.harness.wire import get

AROUND = 0.12
PROBE_SECONDS = 0.004


@dataclass(slots=True)
class Late:
    """Redirects before the expiry, answers after it, and those among them that should not have been
    redirects, by how late they were.
    """

    before: int = 0
    after: int = 0
    late: list[float] = field(default_factory=list)
    unanswered: int = 0


async def watch(
    group: Sequence[Ear], link: Planted, expires: datetime, found: Late, *, warm: bool
) -> None:
    """Ask every process around the moment.

    `warm` asks before too, so that the answer is kept ready everywhere; else it is read then.
    """
    moment = expires.timestamp()
    path = get(f"/{link.name}")
    if warm:
        await asyncio.sleep(max(0.0, moment - 1.0 - time.time()))
        for ear in group:
            for _ in range(2):
                await ear.ask(path)
    await asyncio.gather(*(_around(ear, path, moment, found, warm=warm) for ear in group))


async def _around(ear: Ear, path: bytes, moment: float, found: Late, *, warm: bool) -> None:
    begin = moment - (AROUND if warm else random.uniform(-0.01, 0.03))
    await asyncio.sleep(max(0.0, begin - time.time()))
    sent = 0.0
    while (
        sent < moment + AROUND
    ):  # so that somebody asks after the moment, however long the answers before it took
        sent = time.time()
        answer = await ear.ask(path)
        redirected = answer.status in (301, 302, 307, 308)
        if sent < moment:
            found.before += redirected
        else:
            found.after += 1
            if redirected:
                found.late.append(sent - moment)
            elif answer.status not in (404, 410):
                found.unanswered += 1
        await asyncio.sleep(PROBE_SECONDS)
