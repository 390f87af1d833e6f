"""Memory that was freed, returned to the system."""

import ctypes
from contextlib import suppress


def release_free_memory() -> None:
    """Return free memory of the C library to the system, where it can (glibc).

    For large libraries that were used and dropped: what they held lies between other blocks, and
    would stay with the process. Takes a millisecond or two.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
