"""How much of our memory and patience a foreign server may have."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Sizes in bytes, times in seconds. The time for the whole fetch is an argument of `fetch`."""

    connect: float = 3.0
    idle: float = 5.0
    wire: int = 2 * MIB
    pieces: int = (
        16 * KIB
    )  # chunks of a body: a million of one byte each would cost seconds of work
    decoded: int = 8 * MIB
    ratio: int = 100
    ratio_from: int = (
        64 * KIB
    )  # a small page of blanks may shrink as much as a bomb does, and harms nobody
    head: int = 64 * KIB
    headers: int = 64
    redirects: int = 5
    per_host: int = 2
    addresses: int = 4  # of one host, tried in turn
