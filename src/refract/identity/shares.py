"""Fair shares of what a process has little of: live streams and exports, so many at a time for each person."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import TypeVar

from refract.core.runtime import Runtime
from refract.identity.errors import ExportLimitReached, StreamLimitReached

RETRY_SECONDS = 5
Piece = TypeVar("Piece", str, bytes)


class PersonalShares:
    """What each person has open in this process (`rt.part(PersonalShares)`)."""

    def __init__(self, rt: Runtime) -> None:
        self._settings = rt.settings
        self._streams: Counter[int] = Counter()
        self._exports: Counter[int] = Counter()

    def check_streams(self, user_id: int) -> None:
        """Raise `StreamLimitReached` when a person has as many streams as they may."""
        limit = self._settings.streams_per_person
        if limit is not None and self._streams[user_id] >= limit:
            raise StreamLimitReached(limit=limit, retry_after=RETRY_SECONDS)

    @contextmanager
    def stream(self, user_id: int) -> Iterator[None]:
        """Count a stream for as long as the block runs."""
        self.check_streams(user_id)
        with _counting(self._streams, user_id):
            yield

    @contextmanager
    def export(self, user_id: int) -> Iterator[None]:
        """Count an export for as long as the block runs. Raises `ExportLimitReached`."""
        limit = self._settings.exports_per_person
        if limit is not None and self._exports[user_id] >= limit:
            raise ExportLimitReached(limit=limit, retry_after=RETRY_SECONDS)
        with _counting(self._exports, user_id):
            yield


@contextmanager
def _counting(open_now: Counter[int], user_id: int) -> Iterator[None]:
    open_now[user_id] += 1
    try:
        yield
    finally:
        open_now[user_id] -= 1
        if not open_now[user_id]:
            del open_now[user_id]


async def begin_export(rt: Runtime, user_id: int, pieces: AsyncGenerator[Piece, None]) -> AsyncIterator[Piece]:
    """Return an export that has begun, within its person's share: what goes wrong at once is answered as a problem."""
    counted = _counted(rt, user_id, pieces)
    try:
        first = await anext(counted)
    except BaseException:
        await counted.aclose()
        raise
    return _after(first, counted)


async def _counted(rt: Runtime, user_id: int, pieces: AsyncGenerator[Piece, None]) -> AsyncGenerator[Piece, None]:
    with rt.part(PersonalShares).export(user_id):
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece


async def _after(first: Piece, rest: AsyncGenerator[Piece, None]) -> AsyncIterator[Piece]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece
