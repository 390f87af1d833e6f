"""Counters and gauges for Prometheus. A label never holds a name, a code or an address."""

from dataclasses import dataclass, field

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)


@dataclass(slots=True)
class Metrics:
    """One registry per runtime, so that two of them can live in one test process."""

    registry: CollectorRegistry = field(default_factory=lambda: CollectorRegistry(auto_describe=True))

    def counter(self, name: str, documentation: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, documentation, labels, registry=self.registry)

    def gauge(self, name: str, documentation: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, documentation, labels, registry=self.registry)

    def histogram(self, name: str, documentation: str, labels: tuple[str, ...] = ()) -> Histogram:
        return Histogram(name, documentation, labels, registry=self.registry)

    def render(self) -> bytes:
        return generate_latest(self.registry)
