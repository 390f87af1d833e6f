"""Counting of unique visitors: exact while they are few, estimated when many, in at most 8 kB.

Up to 200 visitors are kept as they are. Beyond, a HyperLogLog sketch of 2**14 registers is still
exact to more than a thousand and has a standard error below one percent at any number. Sketches of
the same day can be merged, no matter which process made them.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Any, Final

from refract.clicks.compiled import choose

LOG2_REGISTERS: Final = 14
MAX_EXACT_VISITORS: Final = 200
HASH_BYTES: Final = 5
"""Bytes of a visitor's hash: among a million, fewer than one collision is expected."""
_EXACT_MARKER: Final = b"\0"  # no stored HyperLogLog begins like this


@cache
def _load_library() -> Any:
    # Imports numpy: only once there are many visitors to count.
    import datasketches  # type: ignore[import-untyped]  # noqa: PLC0415 - see above

    return datasketches


class VisitorSketch:
    """A set of visitors that can be extended and counted, but not listed."""

    __slots__ = ("few", "many")

    def __init__(self) -> None:
        self.few: set[bytes] = set()
        self.many: Any = None

    def update(self, visitors: Iterable[bytes]) -> None:
        """Add visitors by their hashes, each of `HASH_BYTES` bytes."""
        if self.many is not None:
            for visitor in visitors:
                self.many.update(int.from_bytes(visitor, "big"))
            return
        self.few.update(visitors)
        if len(self.few) > MAX_EXACT_VISITORS:
            self.switch_to_estimate()

    def merge(self, other: "VisitorSketch") -> None:
        """Add the visitors of another sketch."""
        if other.many is None:
            self.update(other.few)
            return
        if self.many is None:
            self.switch_to_estimate()
        library = _load_library()
        union = library.hll_union(LOG2_REGISTERS)
        union.update(self.many)
        union.update(other.many)
        self.many = union.get_result(library.tgt_hll_type.HLL_4)

    def switch_to_estimate(self) -> None:
        """Convert the exact set to an estimate."""
        library = _load_library()
        self.many = library.hll_sketch(LOG2_REGISTERS, library.tgt_hll_type.HLL_4)
        for visitor in self.few:
            self.many.update(int.from_bytes(visitor, "big"))
        self.few = set()

    def get_estimator(self) -> Any:
        """Return the library's sketch, for any number of visitors."""
        if self.many is None:
            self.switch_to_estimate()
        return self.many

    def count(self) -> int:
        if self.many is None:
            return len(self.few)
        estimate: float = self.many.get_estimate()
        return round(estimate)

    def to_bytes(self) -> bytes:
        if self.many is None:
            return encode_visitors(self.few)
        data: bytes = self.many.serialize_compact()
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> "VisitorSketch":
        sketch = cls()
        if data[:1] == _EXACT_MARKER:
            sketch.few = {
                data[place : place + HASH_BYTES] for place in range(1, len(data), HASH_BYTES)
            }
        else:
            sketch.many = _load_library().hll_sketch.deserialize(data)
        return sketch


def _encode_visitors(visitors: Collection[bytes]) -> bytes:
    """Return the stored sketch of few visitors."""
    return _EXACT_MARKER + b"".join(sorted(visitors))


encode_visitors: Final = choose(_encode_visitors, "encode_visitors")


def merge_sketches(sketches: Iterable[VisitorSketch]) -> VisitorSketch:
    """Return a new sketch of the visitors in any of these."""
    whole = VisitorSketch()
    for sketch in sketches:
        whole.merge(sketch)
    return whole


def count_cumulatively(stored: Iterable[bytes | None]) -> Iterator[int]:
    """Yield the number of visitors in all stored sketches up to each one."""
    whole, union, size = VisitorSketch(), None, 0
    for data in stored:
        if data:
            sketch = VisitorSketch.from_bytes(data)
            if union is not None:
                union.update(sketch.get_estimator())
            else:
                whole.merge(sketch)
            if union is None and whole.many is not None:
                union = _load_library().hll_union(LOG2_REGISTERS)
                union.update(whole.many)
            size = whole.count() if union is None else round(union.get_estimate())
        yield size


def count_visitors(stored: Iterable[bytes]) -> int:
    """Return the number of visitors in these stored sketches together."""
    small, union = VisitorSketch(), None
    for data in stored:
        if data[:1] == _EXACT_MARKER:
            small.merge(VisitorSketch.from_bytes(data))
            continue
        library = _load_library()
        union = union or library.hll_union(LOG2_REGISTERS)
        union.update(library.hll_sketch.deserialize(data))
    if union is None:
        return small.count()
    union.update(small.get_estimator())
    estimate: float = union.get_estimate()
    return round(estimate)
