"""Decoded rows of roll-ups, and deltas that are added to them. Pure."""

from typing import Any, Final

from refract.clicks.ingest.batch import RollupDelta
from refract.clicks.rollups.breakdowns import (
    BreakdownCounts,
    add_counts,
    decode_counts,
    encode_counts,
    encode_group_counts,
    limit_values,
)
from refract.clicks.rollups.sketches import VisitorSketch

MIN_GROUP_KIND: Final = 100
"""Roll-ups of lower kinds belong to targets, in which every click is once."""


class RollupRow:
    """A decoded row of roll-ups."""

    __slots__ = ("bots", "parts", "people", "private", "sketch", "uniques")

    def __init__(self, people: int = 0, bots: int = 0, private: int = 0, uniques: int = 0) -> None:
        self.people = people
        self.bots = bots
        self.private = private
        self.uniques = uniques
        self.sketch: VisitorSketch | None = None
        self.parts: BreakdownCounts = {}

    def add_clicks(self, delta: RollupDelta) -> None:
        """Add clicks and breakdowns, without visitors."""
        self.people += delta.people
        self.bots += delta.bots
        self.private += delta.private
        add_counts(self.parts, delta.parts)
        self.parts = limit_values(self.parts)

    def add_visitors(self, delta: RollupDelta) -> int:
        """Add the visitors; return how many of them are new."""
        if not delta.visitors and delta.sketch is None:
            return 0
        if self.sketch is None:
            self.sketch = VisitorSketch()
        if delta.sketch is not None:
            self.sketch.merge(delta.sketch)
        self.sketch.update(delta.visitors)
        before, self.uniques = self.uniques, self.sketch.count()
        return self.uniques - before

    def encode(self, kind: int, *, pack: bool) -> tuple[Any, ...]:
        """Return the values to store; `pack` the breakdowns of rows that are read often."""
        visitors = self.sketch.to_bytes() if self.sketch is not None else None
        encode_parts = encode_group_counts if kind >= MIN_GROUP_KIND else encode_counts
        parts = encode_parts(self.parts, pack=pack)
        return (self.people, self.bots, self.private, self.uniques, visitors, parts)


def decode_row(
    people: int, bots: int, private: int, uniques: int, visitors: bytes | None, parts: bytes | None
) -> RollupRow:
    row = RollupRow(people, bots, private, uniques)
    row.sketch = VisitorSketch.from_bytes(visitors) if visitors else None
    row.parts = decode_counts(parts)
    return row


def add_delta(into: RollupDelta, more: RollupDelta) -> None:
    """Add a delta to another one, leaving `more` unchanged."""
    into.people += more.people
    into.bots += more.bots
    into.private += more.private
    into.uniques += more.uniques
    add_counts(into.parts, more.parts)
    if more.sketch is not None:
        into.sketch = into.sketch or VisitorSketch()
        into.sketch.merge(more.sketch)
    into.visitors += more.visitors


def decode_delta(row: Any) -> RollupDelta:
    """Return the clicks of a stored row."""
    delta = RollupDelta()
    delta.people, delta.bots, delta.private = row.people, row.bots, row.private
    delta.parts = decode_counts(row.parts)
    delta.sketch = VisitorSketch.from_bytes(row.visitors) if row.visitors else None
    return delta
