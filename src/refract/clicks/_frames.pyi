from collections.abc import Callable

from refract.clicks.ingest.batch import RollupDelta, RollupSlot
from refract.clicks.ingest.event_rows import EventRows, RowShape
from refract.clicks.ingest.facts import FactsExtractor
from refract.clicks.spool.format import FrameScan

SOURCE_DIGEST: str

def scan_frames(data: bytes, limit: int) -> FrameScan: ...
def collect_days(frames: bytes, received: int) -> set[int]: ...

class EventGatherer:
    tallies: dict[RollupSlot, RollupDelta]

    def __init__(self, extractor: FactsExtractor, format_second: Callable[[int], str]) -> None: ...
    def begin_batch(
        self, shape: RowShape, frames: bytes, base: int, received: int, salts: dict[int, bytes]
    ) -> None: ...
    def add_clicks(self, rows: EventRows, limit: int) -> bool: ...
