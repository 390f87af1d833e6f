"""Counters and gauges for Prometheus. A label never contains a name, a code or an address."""

from dataclasses import dataclass, field
from typing import TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

MetricT = TypeVar("MetricT", Counter, Gauge, Histogram)


@dataclass(slots=True)
class Metrics:
    """One registry per runtime, so that two of them can exist in one test process.

    Requesting a name again returns the same metric.
    """

    registry: CollectorRegistry = field(
        default_factory=lambda: CollectorRegistry(auto_describe=True)
    )
    _known: dict[str, Counter | Gauge | Histogram] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ProcessCollector(registry=self.registry)  # CPU, memory, open files

    def counter(self, name: str, documentation: str, labels: tuple[str, ...] = ()) -> Counter:
        return self._get_or_create(Counter, name, documentation, labels)

    def gauge(self, name: str, documentation: str, labels: tuple[str, ...] = ()) -> Gauge:
        return self._get_or_create(Gauge, name, documentation, labels)

    def histogram(self, name: str, documentation: str, labels: tuple[str, ...] = ()) -> Histogram:
        return self._get_or_create(Histogram, name, documentation, labels)

    def count_refusal(self, reason: str) -> None:
        """Count a connection or request that was rejected to protect others."""
        self.counter(
            "refract_refused", "Connections and requests turned away, by reason", ("reason",)
        ).labels(reason).inc()

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def _get_or_create(
        self, kind: type[MetricT], name: str, documentation: str, labels: tuple[str, ...]
    ) -> MetricT:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = kind(name, documentation, labels, registry=self.registry)
        if not isinstance(known, kind):
            problem = f"{name} is a {type(known).__name__} already"
            raise TypeError(problem)
        return known
