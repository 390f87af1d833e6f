"""What every part of the program is handed: nothing is global."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from refract.core.clock import Clock, SystemClock
from refract.core.db import Database
from refract.core.ids import IdSource
from refract.core.leases import leased_ids
from refract.core.metrics import Metrics
from refract.core.secrets import Secret, load_secret
from refract.core.settings import Settings


@dataclass(slots=True)
class Runtime:
    """Settings and connections, built once per process or per test."""

    settings: Settings
    db: Database
    clock: Clock
    ids: IdSource
    secret: Secret
    metrics: Metrics = field(default_factory=Metrics)


@asynccontextmanager
async def running(settings: Settings, clock: Clock | None = None, *, patient: bool = False) -> AsyncIterator[Runtime]:
    """A runtime with its worker id and connections, all given back at the end. The patient start while the database is away."""
    clock = clock or SystemClock()
    db = Database(settings)
    try:
        async with leased_ids(db, clock, patient=patient) as ids:
            yield Runtime(settings=settings, db=db, clock=clock, ids=ids, secret=load_secret(settings))
    finally:
        await db.close()
