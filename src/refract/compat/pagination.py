"""Pages by number with totals, and long answers as streams that need little memory."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response, StreamingResponse

from refract.compat.request import DialectRequest

BATCH_SIZE = 500
"""Objects that are loaded, shown and sent together."""
MAX_NUMBER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class NumberedPage:
    """A stretch of a list: `limit` rows from `offset` on."""

    offset: int
    limit: int

    @classmethod
    def from_number(cls, request: DialectRequest, default: int) -> "NumberedPage":
        """Return the page that `page` and `itemsPerPage` name; -1 items are all."""
        size = request.get_int("itemsPerPage", default, -1, MAX_NUMBER)
        if size <= 0:
            return cls(0, MAX_NUMBER)
        number = request.get_int("page", 1, 1, MAX_NUMBER)
        return cls((number - 1) * size, size)

    def count_items(self, total: int) -> int:
        """Return how many rows of a list of `total` are on the page."""
        return max(0, min(self.limit, total - self.offset))

    def iter_batches(self, total: int) -> "list[NumberedPage]":
        """Return the page in parts of at most `BATCH_SIZE` rows."""
        end = self.offset + self.count_items(total)
        return [
            NumberedPage(begin, min(BATCH_SIZE, end - begin))
            for begin in range(self.offset, end, BATCH_SIZE)
        ]


async def make_list_response(
    batches: AsyncIterator[Sequence[Any]], *, head: str = "[", tail: str = "]"
) -> Response:
    """Return a JSON document with the objects of all batches between `head` and `tail`.

    The first batch is loaded before the response starts, so that its errors have a status. Short
    lists are sent at once, long ones batch by batch.
    """
    first = await anext(batches, None) or ()  # a tuple as default breaks CPython 3.11
    second = await anext(batches, None) if len(first) >= BATCH_SIZE else None
    if second is None:
        return Response(head + _join(first) + tail, media_type="application/json")
    return StreamingResponse(
        _iter_pieces(head + _join(first), second, batches, tail), media_type="application/json"
    )


async def _iter_pieces(
    begin: str, batch: Sequence[Any], batches: AsyncIterator[Sequence[Any]], tail: str
) -> AsyncIterator[str]:
    yield begin
    if batch:
        yield "," + _join(batch)
    async for further in batches:
        if further:
            yield "," + _join(further)
    yield tail


def _join(batch: Sequence[Any]) -> str:
    return ",".join(dump_json(shown) for shown in batch)


def dump_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def make_json_response(
    value: Any, status: int = 200, media_type: str = "application/json"
) -> Response:
    return Response(dump_json(value), status, media_type=media_type)
