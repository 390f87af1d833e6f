"""How many different visitors: counted exactly while they are few, estimated closely when they are many, in 8 kB at most.

A sketch of 2**14 registers is exact to beyond a thousand visitors and has a standard error below one percent at any number.
Sketches of the same day may be merged, whichever process made them.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

REGISTERS: Final = 14
Sketch = Any
"""A `datasketches.hll_sketch`; the library says nothing about its types."""


@cache
def _library() -> Any:
    import datasketches  # type: ignore[import-untyped]  # noqa: PLC0415 - brings numpy with it: only once there are visitors to count

    return datasketches


def empty() -> Sketch:
    library = _library()
    return library.hll_sketch(REGISTERS, library.tgt_hll_type.HLL_4)


def read(data: bytes) -> Sketch:
    return _library().hll_sketch.deserialize(data)


def write(sketch: Sketch) -> bytes:
    data: bytes = sketch.serialize_compact()
    return data


def size(sketch: Sketch) -> int:
    estimate: float = sketch.get_estimate()
    return round(estimate)


def merged(*some: Sketch) -> Sketch:
    """A new sketch of everybody who is in any of these."""
    library = _library()
    union = library.hll_union(REGISTERS)
    for sketch in some:
        union.update(sketch)
    return union.get_result(library.tgt_hll_type.HLL_4)


def count(stored: Iterable[bytes]) -> int:
    """How many visitors are in these stored sketches together."""
    library = _library()
    union = library.hll_union(REGISTERS)
    for data in stored:
        union.update(library.hll_sketch.deserialize(data))
    estimate: float = union.get_estimate()
    return round(estimate)
