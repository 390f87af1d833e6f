"""What the engine counts anyway, as Prometheus wants it: read when asked for, so that a redirect pays nothing. No label says which link."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from refract.redirect.engine import Engine


def spool_bytes(root: Path) -> int:
    """By the sizes of files alone."""
    size = 0
    for path in root.glob("*/*.clicks"):
        with contextlib.suppress(FileNotFoundError):  # stored and removed meanwhile
            size += path.stat().st_size
    return size


class EngineMetrics(Collector):
    """The figures of one engine."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        engine = self._engine
        table, negatives, tiers, bus, spool = engine.table, engine.negatives, engine.tiers, engine.bus, engine.spool
        asked = CounterMetricFamily("refract_lookups", "Short links asked for, by what knew the answer", labels=["tier"])
        asked.add_metric(["memory"], engine.traffic.turn.answered)
        asked.add_metric(["negative"], tiers.known_missing)
        asked.add_metric(["shared"], engine.shared.hits if engine.shared is not None else 0)
        asked.add_metric(["database"], tiers.queries)
        asked.add_metric(["failed"], tiers.failed)
        yield asked
        yield GaugeMetricFamily("refract_cached_links", "Answers kept ready in memory", len(table))
        yield GaugeMetricFamily("refract_cached_misses", "Unknown names remembered", len(negatives))
        yield CounterMetricFamily("refract_cache_evicted", "Answers that made room for others", table.evicted)
        yield CounterMetricFamily("refract_cache_refused", "Answers whose link changed while they were read", table.refused)
        yield CounterMetricFamily("refract_cache_forgotten", "Changes of links heard of", bus.forgotten)
        yield GaugeMetricFamily("refract_changes_unheard", "1 while changes of links cannot be heard of", int(bus.lost))
        yield CounterMetricFamily("refract_clicks_kept", "Clicks written to the spool before their redirect left", spool.kept)
        yield GaugeMetricFamily(
            "refract_spool_bytes", "Clicks in the spools of this node that are not removed yet", spool_bytes(spool.directory.parent)
        )
        yield CounterMetricFamily("refract_clicks_not_kept", "Clicks that found no room on the disk", spool.not_kept)
