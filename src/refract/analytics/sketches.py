"""How many different visitors: counted exactly while they are few, estimated closely when they are many, in 8 kB at most.

Up to 200 visitors are kept as they are. Beyond, a HyperLogLog sketch of 2**14 registers is still exact to more than a thousand and has
a standard error below one percent at any number. Sketches of the same day may be merged, whichever process made them.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

REGISTERS: Final = 14
FEW: Final = 200
WIDTH: Final = 5
"""Bytes of a visitor's hash: among a million, two share theirs less than once."""
_FEW_MARK: Final = b"\0"  # no stored HyperLogLog begins so


@cache
def _library() -> Any:
    import datasketches  # type: ignore[import-untyped]  # noqa: PLC0415 - brings numpy with it: only once there are many visitors to count

    return datasketches


class Sketch:
    """A set of visitors that can be added to and counted, and not listed."""

    __slots__ = ("few", "many")

    def __init__(self) -> None:
        self.few: set[int] = set()
        self.many: Any = None

    def update(self, visitor: int) -> None:
        if self.many is not None:
            self.many.update(visitor)
            return
        self.few.add(visitor)
        if len(self.few) > FEW:
            self.grow()

    def meet(self, other: "Sketch") -> None:
        """Add everybody who is in the other."""
        if other.many is None:
            for visitor in other.few:
                self.update(visitor)
            return
        if self.many is None:
            self.grow()
        library = _library()
        union = library.hll_union(REGISTERS)
        union.update(self.many)
        union.update(other.many)
        self.many = union.get_result(library.tgt_hll_type.HLL_4)

    def grow(self) -> None:
        """From a set to an estimate."""
        library = _library()
        self.many = library.hll_sketch(REGISTERS, library.tgt_hll_type.HLL_4)
        for visitor in self.few:
            self.many.update(visitor)
        self.few = set()

    def estimating(self) -> Any:
        """As the library's sketch, whatever the number."""
        if self.many is None:
            self.grow()
        return self.many

    def size(self) -> int:
        if self.many is None:
            return len(self.few)
        estimate: float = self.many.get_estimate()
        return round(estimate)

    def write(self) -> bytes:
        if self.many is None:
            return _FEW_MARK + b"".join([visitor.to_bytes(WIDTH, "big") for visitor in sorted(self.few)])
        data: bytes = self.many.serialize_compact()
        return data

    @classmethod
    def read(cls, data: bytes) -> "Sketch":
        sketch = cls()
        if data[:1] == _FEW_MARK:
            sketch.few = {int.from_bytes(data[place : place + WIDTH], "big") for place in range(1, len(data), WIDTH)}
        else:
            sketch.many = _library().hll_sketch.deserialize(data)
        return sketch


def merged(some: Iterable[Sketch]) -> Sketch:
    """A new sketch of everybody who is in any of these."""
    whole = Sketch()
    for sketch in some:
        whole.meet(sketch)
    return whole


def growing(stored: Iterable[bytes | None]) -> Iterator[int]:
    """How many visitors the stored sketches up to each have together."""
    whole, union, size = Sketch(), None, 0
    for data in stored:
        if data:
            sketch = Sketch.read(data)
            if union is not None:
                union.update(sketch.estimating())
            else:
                whole.meet(sketch)
            if union is None and whole.many is not None:
                union = _library().hll_union(REGISTERS)
                union.update(whole.many)
            size = whole.size() if union is None else round(union.get_estimate())
        yield size


def count(stored: Iterable[bytes]) -> int:
    """How many visitors are in these stored sketches together."""
    small, union = Sketch(), None
    for data in stored:
        if data[:1] == _FEW_MARK:
            small.meet(Sketch.read(data))
            continue
        library = _library()
        union = union or library.hll_union(REGISTERS)
        union.update(library.hll_sketch.deserialize(data))
    if union is None:
        return small.size()
    union.update(small.estimating())
    estimate: float = union.get_estimate()
    return round(estimate)
