"""Limits per user on what runs at the same time in a process: live streams and exports."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import TypeVar

from refract.core.runtime import Runtime
from refract.identity.errors import ExportLimitReached, StreamLimitReached

RETRY_AFTER_SECONDS = 5
ChunkT = TypeVar("ChunkT", str, bytes)


class UserConcurrencyLimits:
    """Streams and exports that each user has open in this process."""

    def __init__(self, rt: Runtime) -> None:
        self._settings = rt.settings
        self._streams: Counter[int] = Counter()
        self._exports: Counter[int] = Counter()

    def check_stream_limit(self, user_id: int) -> None:
        """Raise `StreamLimitReached` if a user has as many streams open as allowed."""
        limit = self._settings.streams_per_person
        if limit is not None and self._streams[user_id] >= limit:
            raise StreamLimitReached(limit=limit, retry_after=RETRY_AFTER_SECONDS)

    @contextmanager
    def count_stream(self, user_id: int) -> Iterator[None]:
        """Count a stream while the block runs. Raises `StreamLimitReached`."""
        self.check_stream_limit(user_id)
        with _count_open(self._streams, user_id):
            yield

    @contextmanager
    def count_export(self, user_id: int) -> Iterator[None]:
        """Count an export while the block runs. Raises `ExportLimitReached`."""
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
    rt: Runtime, user_id: int, chunks: AsyncGenerator[ChunkT, None]
) -> AsyncIterator[ChunkT]:
    """Return an export that has produced its first chunk, and count it against the user's limit.

    Errors before the first chunk are raised here, where they still become a problem document.
    """
    counted = _limit_export(rt, user_id, chunks)
    try:
        first = await anext(counted)
    except BaseException:
        await counted.aclose()
        raise
    return _prepend_chunk(first, counted)


async def _limit_export(
    rt: Runtime, user_id: int, chunks: AsyncGenerator[ChunkT, None]
) -> AsyncGenerator[ChunkT, None]:
    with rt.singleton(UserConcurrencyLimits).count_export(user_id):
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk


async def _prepend_chunk(
    first: ChunkT, rest: AsyncGenerator[ChunkT, None]
) -> AsyncIterator[ChunkT]:
    async with aclosing(rest):
        yield first
        async for chunk in rest:
            yield chunk
