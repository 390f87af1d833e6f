"""The compiled part of ingest, where there is one: `_frames.pyx`.

The Python functions and classes of the same names are the reference and the fallback.
"""

from typing import Final, TypeVar, cast

from refract.core.compiled import choose_compiled

MODULE_NAME: Final = "refract.clicks._frames"
ImplementationT = TypeVar("ImplementationT")

_module, WHY_NOT_COMPILED = choose_compiled(MODULE_NAME)
IMPLEMENTATION: Final = "python" if _module is None else "compiled"


def choose(reference: ImplementationT, name: str) -> ImplementationT:
    """Return what the compiled module has under this name, or else the reference."""
    return reference if _module is None else cast("ImplementationT", getattr(_module, name))
