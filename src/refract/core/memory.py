"""Memory that was freed, returned to the system."""

import asyncio
import ctypes
from contextlib import suppress
from typing import Final

RELEASE_INTERVAL: Final = 60.0


def release_free_memory() -> None:
    """Return free memory of the C library to the system, where it can (glibc).

    For large libraries that were used and dropped: what they held lies between other blocks, and
    would stay with the process. Takes a millisecond or two.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


async def release_regularly() -> None:
    """Release free memory for as long as this runs: requests leave gaps between what stays."""
    while True:
        await asyncio.sleep(RELEASE_INTERVAL)
        await asyncio.to_thread(release_free_memory)
