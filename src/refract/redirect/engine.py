"""The redirect engine of a process: spool, cache, lookup, invalidation, and their hooks."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import Scope

from refract.clicks.spool import request_flags
from refract.clicks.spool.format import (
    ENTRY_CLICK,
    LINK_CLICK,
    PAGE_VIEW,
    encode_domain,
    encode_frame,
    encode_origin,
    extract_domain,
)
from refract.clicks.spool.languages import encode_language
from refract.clicks.spool.writer import SpoolWriter
from refract.core.clock import to_nanoseconds
from refract.core.db.raw import RawReader, open_raw_reader
from refract.core.errors import Unavailable
from refract.core.ids import encode_base62
from refract.core.redis import create_redis
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.domains.table import DomainTable
from refract.limits.shared_limits import MissLimit
from refract.links.changes import CHANGES_TOPIC
from refract.links.qr_styles import PLAIN_STYLE, QrStyle
from refract.names.grammar import build_path, join_name, name_key
from refract.redirect import responses
from refract.redirect.cache import (
    NEVER,
    STALE_GRACE,
    STALE_TIMEOUT,
    CachedRedirect,
    NegativeCache,
    RedirectCache,
)
from refract.redirect.hooks import ListHandler, RedirectHooks
from refract.redirect.invalidation import CacheInvalidator, ChangeBroadcaster
from refract.redirect.lane import LANE
from refract.redirect.lookup import (
    LOOKUP_QUERY,
    NO_ID,
    UNKNOWN_TIME,
    DatabaseLookup,
    TieredLookup,
)
from refract.redirect.protocol import RedirectConnections
from refract.redirect.redis_cache import RedisLinkCache
from refract.redirect.resolver import (
    CardOutcome,
    MissingOutcome,
    RedirectOutcome,
    RedirectTarget,
    ResolveOutcome,
    SignedInUser,
    TargetRule,
    apply_path,
    parse_cache_key,
    resolve,
)
from refract.redirect.rules import CachedOutcome, CachedRules, compile_rules
from refract.redirect.visitors import Visitor, VisitorFacts
from refract.web.connections import ConnectionLimits
from refract.web.hosts import create_accepted_hosts
from refract.web.networks import create_trusted_proxies, find_scope_network

READER_CONNECTIONS = 4
CONNECT_TIMEOUT = 5.0
"""Seconds that a start waits for these connections."""
MAX_CACHED_PATH_BYTES = 512
"""Longer paths are not cached: visitors must not decide how much memory is used."""

_FRAME_KINDS = {"link": LINK_CLICK, "list": PAGE_VIEW, "entry": ENTRY_CLICK}


def _build_connections(
    rt: Runtime, cache: RedirectCache, spool: SpoolWriter
) -> RedirectConnections:
    """Return what the connections of this process share."""
    return RedirectConnections(
        cache,
        spool,
        proxies=rt.singleton(create_trusted_proxies),
        limits=ConnectionLimits(connections_per_network=rt.settings.connections_per_network),
        hosts=rt.singleton(create_accepted_hosts).prefixes,
        count_refusal=rt.metrics.count_refusal,
        misses=rt.singleton(MissLimit),
        now_ns=rt.clock.now_ns,
    )


class RedirectEngine:
    """The engine of one process.

    Commits of this process invalidate from the start, those of other processes while `run` is open.
    """

    def __init__(self, rt: Runtime) -> None:
        settings, monotonic = rt.settings, rt.clock.monotonic
        self._rt = rt
        self._reader = open_raw_reader(rt.db, connections=READER_CONNECTIONS)
        self._feed_reader = open_raw_reader(rt.db)
        self.spool = _open_spool(settings)
        self.cache = RedirectCache(settings.cached_links, monotonic=monotonic)
        self.negative_cache = NegativeCache(settings.cached_misses, monotonic=monotonic)
        self.connections = _build_connections(rt, self.cache, self.spool)
        redis = rt.singleton(create_redis)
        self.redis_cache = (
            RedisLinkCache(redis, rt.clock.now, monotonic) if redis is not None else None
        )
        self.broadcaster = (
            ChangeBroadcaster(rt, redis, self.redis_cache)
            if redis is not None and self.redis_cache is not None
            else None
        )
        database = DatabaseLookup(rt, self._reader)
        self.visitor_facts = facts = rt.singleton(VisitorFacts)
        self.lookup = TieredLookup(database, self.negative_cache, self.redis_cache, facts)
        self.domains = rt.singleton(DomainTable)
        self.invalidator = CacheInvalidator(
            rt,
            self._feed_reader,
            self.cache,
            self.negative_cache,
            self.lookup,
            self.domains,
            self.redis_cache,
        )
        self.looked_up = 0  # redirects that were not in memory when requested
        self._serve_stale_until = float("-inf")
        self._exit_stack = contextlib.ExitStack()
        self._exit_stack.enter_context(
            rt.signals.subscribe(CHANGES_TOPIC, self.invalidator.apply_changes)
        )
        rt.metrics.registry.register(EngineMetrics(self))

    def build_hooks(self, lists: ListHandler | None = None) -> RedirectHooks:
        return RedirectHooks(
            record=self.record_click,
            fill=self.fill_cache,
            take=self.take_click,
            stale=self.find_stale,
            lists=lists,
            find_domain=self.domains.get,
            find_qr_style=self.find_qr_style,
        )

    async def find_qr_style(self, found: RedirectTarget) -> QrStyle:
        """Return the style of a link's QR code; a plain one while the database is unavailable."""
        if found.kind != "link":
            return PLAIN_STYLE
        # Loads the queries of pages, which the process that only redirects never needs.
        from refract.links.queries.qr_styles import load_qr_style  # noqa: PLC0415

        try:
            async with self._rt.db.read() as session:
                return await load_qr_style(session, found.id)
        except Unavailable:
            return PLAIN_STYLE

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run the sweep and the bus. At the end, send and write what is left."""
        ready = asyncio.Event()
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(self.invalidator.run(ready), name="redirect-bus"),
            asyncio.create_task(self.visitor_facts.refresh_places(), name="visitor-places"),
        ]
        if self.broadcaster is not None:
            tasks += [
                asyncio.create_task(work)
                for work in (
                    self.broadcaster.broadcast(self.lookup.refresh_shared),
                    self.broadcaster.receive(self.invalidator.apply_changes),
                )
            ]
        self.connections.start()
        try:
            await ready.wait()
            await self._open_connections()
            most = self._rt.settings.cached_links // 2
            tasks.append(asyncio.create_task(warm_up(self, self._reader, most), name="warm-up"))
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._exit_stack.close()
            self.connections.stop()
            self.spool.close()
            await self._reader.close()
            await self._feed_reader.close()

    async def _open_connections(self) -> None:
        """Open the connections of lookups. The time of a lookup is too short on a busy machine."""
        asking = (
            self._reader.fetch_rows(LOOKUP_QUERY, "", NO_ID, "") for _ in range(READER_CONNECTIONS)
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await asyncio.gather(*asking, return_exceptions=True)

    async def record_click(self, scope: Scope, found: RedirectTarget) -> None:
        """Record the click of a response through ASGI, which is sent afterwards."""
        headers = dict(scope["headers"])
        await self.connections.turn.add_click(
            encode_frame(
                _FRAME_KINDS[found.kind],
                found.id,
                self.connections.now_ns(),
                request_flags.parse_flags(headers),
                find_scope_network(scope, self._rt),
                headers.get(b"user-agent", b""),
                headers.get(b"referer", b""),
                scope["query_string"],
                encode_origin(found.host, found.chosen.number if found.chosen else None),
                encode_language(headers.get(b"accept-language", b"")),
            )
        )

    async def take_click(self, found: RedirectTarget) -> bool:
        """Take a redirect from the limit of a link, durably; return whether one was left."""
        from refract.links.limits.service import take_clicks  # noqa: PLC0415 - loads SQLAlchemy

        async with self._rt.db.write() as session:
            return await take_clicks(session, found.id, 1) == 1

    def fill_cache(self, path: bytes, found: RedirectTarget, href: str) -> None:
        """Cache a redirect unless it was invalidated while it was read.

        `path` is as `build_cache_key` makes it, here and below.
        """
        if found.asked_at == UNKNOWN_TIME or len(path) > MAX_CACHED_PATH_BYTES:
            return
        rules = None
        if found.rules or found.preview_card:
            built = self._build_cached_rules(path, found)
            if built is None:
                return
            href, rules = built
        entry = CachedRedirect(
            found.id,
            found.version,
            _build_head(found, href),
            _to_nanoseconds(found.expires_at),
            forwards_query=found.forward_query,
            guessable=found.has_guessable_code,
            domain=encode_domain(found.host),
            rules=rules,
        )
        self.cache.fill(path, entry, found.asked_at, name_key(found.text))

    def _build_cached_rules(
        self, path: bytes, found: RedirectTarget
    ) -> tuple[str, CachedRules] | None:
        """Return the link's destination for a path and the rules that decide before it.

        Return None if the path doesn't fit one of the destinations.
        """
        request = parse_cache_key(path).fit(found)
        outcomes = []
        compiled = [
            rule for rule in compile_rules(found, self.visitor_facts) if rule.rule.is_active
        ]
        for template in (found.template, *(rule.rule.template for rule in compiled)):
            outcome = apply_path(found, template, request) if template is not None else None
            if not isinstance(outcome, RedirectOutcome):
                return None
            outcomes.append(outcome.href)
        default, *hrefs = outcomes
        cached = [
            (rule.checks.values(), self._build_cached_outcome(found, href, rule.rule.number))
            for rule, href in zip(compiled, hrefs, strict=True)
        ]
        rules = CachedRules(
            cached,
            self._build_cached_outcome(found, default),
            self.visitor_facts,
            found.preview_card,
        )
        return default, rules

    @staticmethod
    def _build_cached_outcome(
        found: RedirectTarget, href: str, rule: int | None = None
    ) -> CachedOutcome:
        head = _build_head(found, href)
        return CachedOutcome(head, encode_origin(found.host, rule), rule)

    async def look_up(self, path: bytes, network: bytes) -> CachedRedirect | None:
        """Return the redirect of a path that all visitors get, or None if there is none.

        It is cached; while the database is unavailable it may be stale. A miss is noted for the
        network of the client; the process that answers it charges it.
        """
        if len(path) > MAX_CACHED_PATH_BYTES:
            return None
        stale = self.cache.get_stale(path)
        if stale is not None and self._rt.clock.monotonic() < self._serve_stale_until:
            return stale
        try:
            async with asyncio.timeout(STALE_TIMEOUT if stale is not None else None):
                outcome = await self.resolve_and_fill(path)
        except (Unavailable, TimeoutError):
            self._serve_stale_until = self._rt.clock.monotonic() + STALE_GRACE
            return stale
        if isinstance(outcome, MissingOutcome):
            self._rt.singleton(MissLimit).note_call(network.hex())
        found = self.cache.paths.get(path)
        self.looked_up += found is not None
        return found

    async def resolve_and_fill(self, path: bytes) -> ResolveOutcome:
        """Resolve a path as for a visitor who isn't signed in; cache a redirect."""
        request = parse_cache_key(path)
        outcome = await resolve(self.lookup, request, _get_no_user, self._rt.clock.now)
        if isinstance(outcome, RedirectOutcome) and outcome.found.is_cacheable:
            self.fill_cache(path, outcome.found, outcome.href)
        return outcome

    def find_stale(
        self, path: bytes, query: bytes, build_visitor: Callable[[], Visitor]
    ) -> RedirectOutcome | CardOutcome | None:
        """Return the stale outcome of a path, unless it has expired or depends on the query."""
        entry = self.cache.get_stale(path)
        if (
            entry is None
            or self.connections.now_ns() >= entry.expires_ns
            or (entry.forwards_query and query)
        ):
            return None
        outcome: CachedOutcome | None = CachedOutcome(entry.head, entry.domain)
        if entry.rules is not None:
            outcome = entry.rules.choose(build_visitor())
        status, href = responses.parse_head(entry.head if outcome is None else outcome.head)
        rule = None if outcome is None else outcome.rule
        found = RedirectTarget(
            kind="link",
            id=entry.target,
            name=encode_base62(entry.target) if entry.guessable else "",
            host=extract_domain(entry.domain) or "",
            by_code=entry.guessable,
            redirect_status=status,
            version=entry.version,
            chosen=TargetRule(rule, None, {}) if rule is not None else None,
            preview_card=entry.rules.card if entry.rules is not None else None,
        )
        return CardOutcome(found) if outcome is None else RedirectOutcome(found, href)


def _build_head(found: RedirectTarget, href: str) -> bytes:
    return responses.build_head(found.redirect_status, href.encode("ascii"), noindex=found.noindex)


def _to_nanoseconds(moment: datetime | None) -> int:
    return NEVER if moment is None else to_nanoseconds(moment)


# Warm-up: a new process reads the most used links before they are requested.

MAX_WARM_LINKS = 1000
WARM_UP_YIELD_EVERY = 20
_TOP_LINKS_QUERY = "SELECT link_id FROM link_totals ORDER BY total_clicks DESC LIMIT ?"
_NAMES_QUERY = "SELECT name FROM names WHERE kind = 'link' AND target_id = ?"
_DOMAIN_QUERY = "SELECT domain FROM links WHERE id = ?"


async def warm_up(engine: "RedirectEngine", reader: RawReader, max_links: int) -> int:
    """Cache the most used links under their names or codes. Return the number of paths.

    Ends early if the database is unavailable.
    """
    filled = 0
    with contextlib.suppress(Unavailable):
        for number, (link_id,) in enumerate(
            await reader.fetch_rows(_TOP_LINKS_QUERY, min(max_links, MAX_WARM_LINKS))
        ):
            names = [str(row[0]) for row in await reader.fetch_rows(_NAMES_QUERY, link_id)] or [
                join_name(str(row[0] or ""), encode_base62(link_id))
                for row in await reader.fetch_rows(_DOMAIN_QUERY, link_id)
            ]
            for path in [build_path(name).encode() for name in names]:
                await engine.resolve_and_fill(path)
                filled += path in engine.cache.paths
            if number % WARM_UP_YIELD_EVERY == 0:
                await asyncio.sleep(0.001)  # requests come first
    structlog.get_logger("refract.warmup").debug("cache_warmed", paths=filled)
    return filled


async def _get_no_user() -> SignedInUser | None:
    return None


def _open_spool(settings: Settings) -> SpoolWriter:
    return SpoolWriter(
        settings.effective_spool_dir,
        node=socket.gethostname(),
        segment_bytes=settings.spool_segment_bytes,
        sync=settings.spool_sync,
    )


# Prometheus metrics of counters the engine has anyway: a redirect costs nothing more. No label
# names a link.


def get_spool_bytes(root: Path) -> int:
    """Return the size of all spool files."""
    size = 0
    for path in root.glob("*/*.clicks"):
        with contextlib.suppress(FileNotFoundError):  # stored and removed since
            size += path.stat().st_size
    return size


class EngineMetrics(Collector):
    """Metrics of an engine."""

    def __init__(self, engine: "RedirectEngine") -> None:
        self._engine = engine

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        yield self._count_lookups()
        lane = GaugeMetricFamily(
            "refract_lane",
            "1 for the fast lane that answers cached redirects, compiled or python",
            labels=["implementation"],
        )
        lane.add_metric([LANE], 1)
        yield lane
        yield from self._collect_cache()
        yield from self._collect_spool()

    def _count_lookups(self) -> Metric:
        engine, tiers = self._engine, self._engine.lookup
        asked = CounterMetricFamily(
            "refract_lookups",
            "Lookups of short links, by the tier that had the answer",
            labels=["tier"],
        )
        asked.add_metric(["memory"], engine.connections.turn.answered - engine.looked_up)
        asked.add_metric(["negative"], tiers.negative_hits)
        asked.add_metric(
            ["shared"], engine.redis_cache.hits if engine.redis_cache is not None else 0
        )
        asked.add_metric(["database"], tiers.queries)
        asked.add_metric(["failed"], tiers.failed)
        return asked

    def _collect_cache(self) -> Iterator[Metric]:
        table, bus = self._engine.cache, self._engine.invalidator
        negatives = self._engine.negative_cache
        yield GaugeMetricFamily("refract_cached_links", "Redirects cached in memory", len(table))
        yield GaugeMetricFamily(
            "refract_cached_misses", "Missing names cached in memory", len(negatives)
        )
        yield CounterMetricFamily(
            "refract_cache_evicted", "Redirects evicted from the cache", table.evicted
        )
        yield CounterMetricFamily(
            "refract_cache_refused",
            "Redirects not cached because the link changed while it was read",
            table.refused,
        )
        yield CounterMetricFamily(
            "refract_cache_forgotten", "Changes of links received", bus.invalidated
        )
        yield GaugeMetricFamily(
            "refract_changes_unheard",
            "1 while changes of links cannot be received",
            int(bus.feed_lost),
        )

    def _collect_spool(self) -> Iterator[Metric]:
        spool = self._engine.spool
        yield CounterMetricFamily(
            "refract_clicks_kept",
            "Clicks written to the spool before their redirect was sent",
            spool.written,
        )
        yield GaugeMetricFamily(
            "refract_spool_bytes",
            "Clicks in the spools of this node that are not removed yet",
            get_spool_bytes(spool.directory.parent),
        )
        yield CounterMetricFamily(
            "refract_clicks_not_kept", "Clicks lost because the disk was full", spool.dropped
        )
