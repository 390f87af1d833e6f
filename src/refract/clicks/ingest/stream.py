"""Clicks in a Redis stream, from a node's spool to the nodes that write to the database.

An entry is a batch of frames as in the spool, with their position. Nothing depends on the stream's
durability: the node keeps its spool until the database says that the batch is stored.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from refract.clicks.spool.reader import (
    SpoolBatch,
    SpoolDamage,
    SpoolPosition,
    SpoolState,
    scan_frames,
)
from refract.core.redis import RedisClient, RedisScript, RedisUnavailable

STREAM_KEY: Final = "refract:clicks"
CONSUMER_GROUP: Final = "ingest"
STREAM_TIMEOUT: Final = 2.0
"""Only the next batch waits for this."""

_TRIM_SCRIPT: Final = RedisScript("""
local lowest = nil
local function less(a, b)
  local am, as = string.match(a, '(%d+)-(%d+)')
  local bm, bs = string.match(b, '(%d+)-(%d+)')
  am, as, bm, bs = tonumber(am), tonumber(as), tonumber(bm), tonumber(bs)
  return am < bm or (am == bm and as < bs)
end
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local facts = {}
  for i = 1, #group, 2 do facts[group[i]] = group[i + 1] end
  local seen = facts['last-delivered-id']
  local pending = redis.call('XPENDING', KEYS[1], facts['name'])
  if pending[1] > 0 and less(pending[2], seen) then seen = pending[2] end
  if not lowest or less(seen, lowest) then lowest = seen end
end
if not lowest then return 0 end
return redis.call('XTRIM', KEYS[1], 'MINID', '=', lowest)
""")
"""Remove entries that every group has acknowledged, and no others.

In one step, so that no group reads meanwhile.
"""


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A batch between two positions of a spool."""

    spool_id: int
    node: str
    start: SpoolPosition
    batch: SpoolBatch

    @property
    def spool(self) -> SpoolState:
        """Return the facts of the remote spool that applying a batch needs."""
        return SpoolState(self.spool_id, Path(), self.node, is_live=False, segments=(), dropped=0)

    def skip_to(self, position: SpoolPosition) -> "StreamBatch":
        """Return the rest of the batch when everything before this position is stored."""
        return StreamBatch(self.spool_id, self.node, position, self.batch.skip_to(position))

    def join(self, other: "StreamBatch", max_clicks: int) -> "StreamBatch | None":
        """Join the next batch to this one; return None if they are not adjacent or too large."""
        mine, its = self.batch, other.batch
        apart = (
            self.spool_id != other.spool_id
            or mine.next != other.start
            or mine.segment != its.segment
            or mine.damage
            or mine.torn
        )
        if apart or mine.click_count + its.click_count > max_clicks:
            return None
        joined = its._replace(
            frames=mine.frames + its.frames,
            base=mine.base if mine.click_count else its.base,
            click_count=mine.click_count + its.click_count,
        )
        return StreamBatch(self.spool_id, self.node, self.start, joined)


async def send_batch(redis: RedisClient, parcel: StreamBatch) -> bytes:
    """Put a batch on the stream; return the id of its entry."""
    batch = parcel.batch
    damage = ":".join(map(str, batch.damage)) if batch.damage else ""
    words: list[str | bytes | int] = [
        "spool", parcel.spool_id, "node", parcel.node, "from", _format_position(parcel.start), "to",
        _format_position(batch.next), "segment", batch.segment, "base", batch.base, "torn",
        batch.torn, "damage", damage, "frames", batch.frames,
    ]  # fmt: skip
    answer: bytes = await redis.execute("XADD", STREAM_KEY, "*", *words, seconds=STREAM_TIMEOUT)
    return answer


def parse_entry(fields: list[bytes]) -> StreamBatch:
    """Parse an entry.

    Raises `ValueError` or `KeyError` for one that was not sent by Refract.
    """
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    damage = SpoolDamage(*map(int, values[b"damage"].split(b":"))) if values[b"damage"] else None
    frames = values[b"frames"]
    found = scan_frames(frames, len(frames))
    if found.is_broken:
        problem = "a frame is broken"
        raise ValueError(problem)
    batch = SpoolBatch(
        int(values[b"segment"]),
        _parse_position(values[b"to"]),
        frames[: found.size],
        int(values[b"base"]),
        found.clicks,
        int(values[b"torn"]),
        damage,
    )
    return StreamBatch(
        int(values[b"spool"]),
        values[b"node"].decode("utf-8", "replace"),
        _parse_position(values[b"from"]),
        batch,
    )


async def create_group(redis: RedisClient) -> None:
    """Create the group, from the start of the stream, since nothing there is known to be stored."""
    try:
        await redis.execute(
            "XGROUP", "CREATE", STREAM_KEY, CONSUMER_GROUP, "0", "MKSTREAM", seconds=STREAM_TIMEOUT
        )
    except RedisUnavailable as exc:
        if "BUSYGROUP" not in str(exc):
            raise


async def has_entry(redis: RedisClient, entry: bytes) -> bool:
    """Return whether the stream still has an entry: a Redis that lost its memory has none."""
    return bool(
        await redis.execute("XRANGE", STREAM_KEY, entry, entry, "COUNT", 1, seconds=STREAM_TIMEOUT)
    )


async def trim_acknowledged(redis: RedisClient) -> int:
    """Remove entries that every group has acknowledged; return how many."""
    return int(await redis.run_script(_TRIM_SCRIPT, [STREAM_KEY], seconds=STREAM_TIMEOUT))


async def get_length(redis: RedisClient) -> int:
    return int(await redis.execute("XLEN", STREAM_KEY))


async def delete_idle_consumers(redis: RedisClient, idle_ms: int) -> None:
    """Delete consumers of processes that ended long ago and have nothing pending."""
    for consumer in await redis.execute(
        "XINFO", "CONSUMERS", STREAM_KEY, CONSUMER_GROUP, seconds=STREAM_TIMEOUT
    ):
        facts: dict[bytes, Any] = dict(zip(consumer[::2], consumer[1::2], strict=True))
        if not facts[b"pending"] and facts[b"idle"] > idle_ms:
            await redis.execute(
                "XGROUP",
                "DELCONSUMER",
                STREAM_KEY,
                CONSUMER_GROUP,
                facts[b"name"],
                seconds=STREAM_TIMEOUT,
            )


def _format_position(position: SpoolPosition) -> str:
    return f"{position.segment}:{position.offset}"


def _parse_position(text: bytes) -> SpoolPosition:
    segment, offset = text.split(b":")
    return SpoolPosition(int(segment), int(offset))
