"""Counts of single clicks: the question, and the result. Loaded where requests are served."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import Select


class CountedScope(Protocol):
    """Links whose clicks are counted together."""

    @property
    def kind(self) -> int:
        """The kind of clicks that are counted."""

    def select_links(self) -> Select[int]:
        """Return a query of the ids of its links."""


@dataclass(frozen=True, slots=True)
class CountRequest:
    """Clicks to be counted: their links, values and period, and what they are counted by."""

    scope: CountedScope
    values: Mapping[str, str | None]
    """Values that clicks must have, by dimension: all of them. Private clicks have none."""
    edges: Sequence[int]
    """The beginnings of the buckets, and the end of the last one. In seconds, on quarter hours."""
    dimensions: Sequence[str] = ()

    @property
    def begin(self) -> int:
        return self.edges[0]

    @property
    def end(self) -> int:
        return self.edges[-1]


@dataclass(slots=True)
class BucketCount:
    """Clicks of people, unique visitors by UTC day, and bots."""

    clicks: int = 0
    uniques: int = 0
    bots: int = 0


@dataclass(slots=True)
class CountResult:
    """Clicks by bucket, in total and by value, of one period."""

    buckets: list[BucketCount]
    uniques: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)
    kept_from: int = 0
    """Clicks before this moment are no longer kept, in seconds."""

    @property
    def clicks(self) -> int:
        return sum(bucket.clicks for bucket in self.buckets)

    @property
    def bots(self) -> int:
        return sum(bucket.bots for bucket in self.buckets)
