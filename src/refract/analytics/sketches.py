"""How many different visitors: counted exactly while they are few, estimated closely when they are many, in 8 kB at most.

A sketch of 2**14 registers is exact to beyond a thousand visitors and has a standard error below one percent at any number.
Sketches of the same day may be merged, whichever process made them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from datasketches import hll_sketch

REGISTERS: Final = 14


class Sketches:
    """The library, loaded where visitors are counted and nowhere else: it brings numpy with it."""

    def __init__(self) -> None:
        import datasketches  # noqa: PLC0415 - heavy, and not needed to redirect

        self._sketch = datasketches.hll_sketch
        self._union = datasketches.hll_union
        self._kind: Any = datasketches.tgt_hll_type.HLL_4

    def empty(self) -> "hll_sketch":
        return self._sketch(REGISTERS, self._kind)

    def read(self, data: bytes) -> "hll_sketch":
        return self._sketch.deserialize(data)

    def merged(self, one: "hll_sketch", other: "hll_sketch") -> "hll_sketch":
        """A sketch of everybody who is in either."""
        union = self._union(REGISTERS)
        union.update(one)
        union.update(other)
        return union.get_result(self._kind)

    def count(self, stored: Iterable[bytes]) -> int:
        """How many visitors are in these stored sketches together."""
        union = self._union(REGISTERS)
        for data in stored:
            union.update(self._sketch.deserialize(data))
        return round(union.get_estimate())


def write(sketch: "hll_sketch") -> bytes:
    data: bytes = sketch.serialize_compact()
    return data


def size(sketch: "hll_sketch") -> int:
    return round(sketch.get_estimate())
