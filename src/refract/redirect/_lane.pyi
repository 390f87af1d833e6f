from collections.abc import Callable, Iterable

from refract.clicks.spool.writer import ResponseTransport
from refract.redirect.lane import LaneState

SOURCE_DIGEST: str

class HitResponder:
    def __init__(
        self,
        shared: LaneState,
        transport: ResponseTransport,
        network: bytes,
        find_network: Callable[[Iterable[tuple[bytes, bytes]]], bytes] | None,
    ) -> None: ...
    def answer(self, data: bytes) -> bool: ...
