"""Limits for foreign servers."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Sizes in bytes, times in seconds. The time for the whole fetch is an argument of `fetch`."""

    connect: float = 3.0
    idle: float = 5.0
    wire: int = 2 * MIB
    # Chunks of a body: a million of one byte each would cost seconds of CPU.
    pieces: int = 16 * KIB
    decoded: int = 8 * MIB
    ratio: int = 100
    # A small page of blanks may be compressed as much as a bomb, and is harmless.
    ratio_from: int = 64 * KIB
    head: int = 64 * KIB
    headers: int = 64
    redirects: int = 5
    per_host: int = 2
    addresses: int = 4  # of one host, tried in turn
