"""The runtime that every part of the program is given. Nothing is global."""

import inspect
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from refract.core.clock import Clock, SystemClock
from refract.core.ids import IdSource, NoIds
from refract.core.secrets import Secret, load_secret
from refract.core.settings.model import Settings
from refract.core.signals import Signals

if TYPE_CHECKING:
    from refract.core.db.session import Database
    from refract.core.metrics import Metrics

SingletonT = TypeVar("SingletonT")


@dataclass(slots=True)
class Runtime:
    """Settings and connections, built once per process or per test."""

    settings: Settings
    db: "Database"
    clock: Clock
    ids: IdSource
    secret: Secret
    _metrics: "Metrics | None" = field(default=None, init=False, repr=False)
    _singletons: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.db.ids = self.ids

    def singleton(self, make: "Callable[[Runtime], SingletonT]") -> SingletonT:
        """Return what a feature keeps between calls, such as a client or a list read from a file.

        It is made once, and closed with the runtime.
        """
        if make not in self._singletons:
            self._singletons[make] = make(self)
        return cast("SingletonT", self._singletons[make])

    @property
    def metrics(self) -> "Metrics":
        """Return the metrics of this process, created with the first use.

        A command counts nothing, and the library brings an HTTP server.
        """
        if self._metrics is None:
            from refract.core.metrics import Metrics  # noqa: PLC0415 - see above

            self._metrics = Metrics()
        return self._metrics

    async def close(self) -> None:
        """Close the singletons that can be closed, in reverse order of creation."""
        while self._singletons:
            _, kept = self._singletons.popitem()
            closed = kept.close() if hasattr(kept, "close") else None
            if inspect.isawaitable(closed):
                await closed

    @property
    def signals(self) -> Signals:
        """Return the database's signals, so that a commit can be announced."""
        return self.db.signals


@asynccontextmanager
async def open_runtime(
    settings: Settings,
    clock: Clock | None = None,
    *,
    db: "Database | None" = None,
    patient: bool = False,
    makes_ids: bool = True,
) -> AsyncIterator[Runtime]:
    """Open a runtime with its worker id and connections; release them when the block ends.

    A `db` that the caller has opened stays open. A `patient` runtime opens while the database is
    unavailable. A process that makes no ids needs no worker id, and so writes nothing.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        if db is None:
            from refract.core.db.session import Database  # noqa: PLC0415 - see `SqliteFile`

            db = Database(settings)
            stack.push_async_callback(db.close)
        ids: IdSource = NoIds()
        if makes_ids:
            from refract.core.worker_ids import lease_ids  # noqa: PLC0415 - as above

            ids = await stack.enter_async_context(lease_ids(db, clock, patient=patient))
        runtime = Runtime(
            settings=settings, db=db, clock=clock, ids=ids, secret=load_secret(settings)
        )
        stack.push_async_callback(runtime.close)
        yield runtime
