"""Fair shares of what a process has little of: live streams and exports, so many at a time for each person."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import TypeVar

from refract.core.runtime import Runtime
from refract.identity.errors import ExportLimitReached, StreamLimitReached

RETRY_AFTER_SECONDS = 5
ChunkT = TypeVar("ChunkT", str, bytes)


class UserConcurrencyLimits:
    """What each person has open in this process (`rt.singleton(PersonalShares)`)."""

    def __init__(self, rt: Runtime) -> None:
        self._settings = rt.settings
        self._streams: Counter[int] = Counter()
        self._exports: Counter[int] = Counter()

    def check_stream_limit(self, user_id: int) -> None:
        """Raise `StreamLimitReached` when a person has as many streams as they may."""
        limit = self._settings.streams_per_person
        if limit is not None and self._streams[user_id] >= limit:
            raise StreamLimitReached(limit=limit, retry_after=RETRY_AFTER_SECONDS)

    @contextmanager
    def count_stream(self, user_id: int) -> Iterator[None]:
        """Count a stream for as long as the block runs."""
        self.check_stream_limit(user_id)
        with _count_open(self._streams, user_id):
            yield

    @contextmanager
    def count_export(self, user_id: int) -> Iterator[None]:
        """Count an export for as long as the block runs. Raises `ExportLimitReached`."""
        limit = self._settings.exports_per_person
        if limit is not None and self._exports[user_id] >= limit:
            raise ExportLimitReached(limit=limit, retry_after=RETRY_AFTER_SECONDS)
        with _count_open(self._exports, user_id):
            yield


@contextmanager
def _count_open(open_now: Counter[int], user_id: int) -> Iterator[None]:
    open_now[user_id] += 1
    try:
        yield
    finally:
        open_now[user_id] -= 1
        if not open_now[user_id]:
            del open_now[user_id]


async def start_export(
    rt: Runtime, user_id: int, pieces: AsyncGenerator[ChunkT, None]
) -> AsyncIterator[ChunkT]:
    """Return an export that has begun, within its person's share: what goes wrong at once is answered as a problem."""
    counted = _limit_export(rt, user_id, pieces)
    try:
        first = await anext(counted)
    except BaseException:
        await counted.aclose()
        raise
    return _prepend_chunk(first, counted)


async def _limit_export(
    rt: Runtime, user_id: int, pieces: AsyncGenerator[ChunkT, None]
) -> AsyncGenerator[ChunkT, None]:
    with rt.singleton(UserConcurrencyLimits).count_export(user_id):
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece


async def _prepend_chunk(
    first: ChunkT, rest: AsyncGenerator[ChunkT, None]
) -> AsyncIterator[ChunkT]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece
