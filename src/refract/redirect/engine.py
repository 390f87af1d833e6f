"""The redirect engine of one process, put together: spool, table, tiers and bus, and how the slow path uses them."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.types import Scope

from refract.analytics import signals
from refract.analytics.frames import ENTRY_CLICK, LINK_CLICK, PAGE_VIEW, frame
from refract.analytics.spool import Spool
from refract.core.address import TrustedProxies, network_of
from refract.core.direct import direct
from refract.core.redis import shared_redis
from refract.core.runtime import Runtime
from refract.links import feed
from refract.names.grammar import name_key
from refract.redirect import answer
from refract.redirect.bus import Bus
from refract.redirect.hooks import Hooks, ListPage
from refract.redirect.lookup import LONG_AGO, DatabaseLookup
from refract.redirect.metrics import EngineMetrics
from refract.redirect.news import News
from refract.redirect.resolve import Found, Leads
from refract.redirect.shared import SharedLinks
from refract.redirect.table import NEVER, Entry, Negatives, Table
from refract.redirect.tiers import Tiers
from refract.redirect.traffic import Traffic
from refract.redirect.warmup import warm_up
from refract.web.connections import Limits
from refract.web.hosts import accepted_hosts

READERS = 4
LONGEST_PATH = 512
"""A longer path is answered, but not kept ready: what a visitor may write must not decide how much memory we need."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FRAMES = {"link": LINK_CLICK, "list": PAGE_VIEW, "entry": ENTRY_CLICK}


class Engine:
    """What this process commits is heard of from the beginning; what others commit, while it is `running`."""

    def __init__(self, rt: Runtime) -> None:
        settings, monotonic = rt.settings, rt.clock.monotonic
        self._rt = rt
        self._reader, self._feed = direct(rt.db, connections=READERS), direct(rt.db)
        self.spool = Spool(
            settings.effective_spool_dir,
            node=socket.gethostname(),
            segment_bytes=settings.spool_segment_bytes,
            sync=settings.spool_sync,
        )
        self.table = Table(settings.cached_links, monotonic=monotonic)
        self.negatives = Negatives(settings.cached_misses, monotonic=monotonic)
        self.traffic = Traffic(
            self.table,
            self.spool,
            proxies=TrustedProxies(settings.trusted_proxies),
            limits=Limits(connections_per_network=settings.connections_per_network),
            hosts=rt.part(accepted_hosts).spellings,
            count_refusal=rt.metrics.refused,
            now_ns=rt.clock.now_ns,
        )
        redis = rt.part(shared_redis)
        self.shared = SharedLinks(redis, rt.clock.now, monotonic) if redis is not None else None
        self.news = News(rt, redis, self.shared) if redis is not None and self.shared is not None else None
        self.tiers = Tiers(DatabaseLookup(rt, self._reader), self.negatives, self.shared)
        self.bus = Bus(rt, self._feed, self.table, self.negatives, self.tiers, self.shared)
        self._open = contextlib.ExitStack()
        self._open.enter_context(rt.signals.following(feed.TOPIC, self.bus.told))
        rt.metrics.registry.register(EngineMetrics(self))

    def hooks(self, lists: ListPage | None = None) -> Hooks:
        return Hooks(record=self.record, fill=self.fill, stale=self.stale, lists=lists)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The sweep and the bus; at the end what is left is sent and written."""
        ready = asyncio.Event()
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(self.bus.run(ready), name="redirect-bus")]
        if self.news is not None:
            tasks += [asyncio.create_task(work) for work in (self.news.tell(self.tiers.share), self.news.hear(self.bus.told))]
        self.traffic.start()
        try:
            await ready.wait()
            most = self._rt.settings.cached_links // 2
            tasks.append(asyncio.create_task(warm_up(self, self._reader, self._rt.clock.now, most), name="warm-up"))
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._open.close()
            self.traffic.stop()
            self.spool.close()
            await self._reader.close()
            await self._feed.close()

    async def record(self, scope: Scope, found: Found) -> None:
        """Keep the click of an answer that leaves through ASGI; it leaves once this is done."""
        headers = dict(scope["headers"])
        peer = scope["client"][0] if scope.get("client") else ""
        forwarded = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        await self.traffic.turn.keep(
            frame(
                _FRAMES[found.kind],
                found.id,
                self.traffic.now_ns(),
                signals.flags_of(headers),
                network_of(self.traffic.proxies.client(peer, forwarded)),
                headers.get(b"user-agent", b""),
                headers.get(b"referer", b""),
                scope["query_string"],
            )
        )

    def fill(self, path: bytes, found: Found, href: str) -> None:
        """Have an answer ready for the next who asks, unless it was forgotten while it was read."""
        if found.asked_at == LONG_AGO or len(path) > LONGEST_PATH:
            return
        head = answer.head(found.redirect_status, href.encode("ascii"))
        entry = Entry(found.id, found.version, head, _nanoseconds(found.expires_at), found.forward_query)
        self.table.fill(path, entry, found.asked_at, name_key(found.name))

    def stale(self, path: bytes, query: bytes) -> Leads | None:
        """Where an address led before we lost touch; never past its expiry, and not where its answer depends on the query."""
        entry = self.table.stale(path)
        if entry is None or self.traffic.now_ns() >= entry.expires_ns or (entry.forwards_query and query):
            return None
        status, href = answer.read_head(entry.head)
        return Leads(Found(kind="link", id=entry.target, name="", redirect_status=status, version=entry.version), href)


def _nanoseconds(moment: datetime | None) -> int:
    return NEVER if moment is None else (moment - _EPOCH) // timedelta(microseconds=1) * 1000
