"""Clicks on their way from a node's spool to whoever may write the database: entries of a Redis stream.

An entry is a batch of frames as they lay in the spool, with where they lay. Nothing depends on the stream keeping it: the node's
spool does, until the database says that the batch is stored.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from refract.analytics.frames import clicks
from refract.analytics.spool_reader import Batch, Damage, Position, SpoolState
from refract.core.redis import Redis, RedisAway, Script

STREAM: Final = "refract:clicks"
GROUP: Final = "ingest"
SEND_SECONDS: Final = 2.0
"""Nobody waits for this but the next batch."""

_TRIM: Final = Script("""
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
"""Remove what every group has acknowledged, and nothing that one has not: in one step, so that nobody reads meanwhile."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A batch between two positions of a spool."""

    spool_id: int
    node: str
    begins: Position
    batch: Batch

    @property
    def spool(self) -> SpoolState:
        """As much of the spool as applying a batch of it needs: it lies on another machine."""
        return SpoolState(self.spool_id, Path(), self.node, live=False, segments=(), not_kept=0)

    def rest(self, position: Position) -> "Parcel":
        """What is left of it when everything before this position is stored."""
        left = [click for click in self.batch.clicks if Position(self.batch.segment, click.offset) >= position]
        return Parcel(self.spool_id, self.node, position, self.batch._replace(clicks=left))

    def joined(self, other: "Parcel", most: int) -> "Parcel | None":
        """This and the next as one; None when they do not lie side by side or would be too much."""
        mine, its = self.batch, other.batch
        apart = self.spool_id != other.spool_id or mine.next != other.begins or mine.segment != its.segment or mine.damage or mine.torn
        if apart or len(mine.clicks) + len(its.clicks) > most:
            return None
        return Parcel(self.spool_id, self.node, self.begins, its._replace(clicks=mine.clicks + its.clicks))


async def send(redis: Redis, parcel: Parcel, frames: bytes) -> bytes:
    """Put a batch on the stream; the answer is its entry's id."""
    batch = parcel.batch
    base = batch.clicks[0].offset if batch.clicks else 0
    damage = ":".join(map(str, batch.damage)) if batch.damage else ""
    words: list[str | bytes | int] = [
        "spool", parcel.spool_id, "node", parcel.node, "from", _spelled(parcel.begins), "to", _spelled(batch.next),
        "segment", batch.segment, "base", base, "torn", batch.torn, "damage", damage, "frames", frames,
    ]  # fmt: skip
    answer: bytes = await redis.ask("XADD", STREAM, "*", *words, seconds=SEND_SECONDS)
    return answer


def received(fields: list[bytes]) -> Parcel:
    """An entry as it was sent. Raises `ValueError`, `KeyError` or `Broken` for one that was not sent by us."""
    told = dict(zip(fields[::2], fields[1::2], strict=True))
    damage = Damage(*map(int, told[b"damage"].split(b":"))) if told[b"damage"] else None
    got = list(clicks(told[b"frames"], int(told[b"base"])))
    batch = Batch(int(told[b"segment"]), got, _position(told[b"to"]), int(told[b"torn"]), damage)
    return Parcel(int(told[b"spool"]), told[b"node"].decode("utf-8", "replace"), _position(told[b"from"]), batch)


async def begin(redis: Redis) -> None:
    """Make the group; from the beginning, since nothing there is known to be stored."""
    try:
        await redis.ask("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM", seconds=SEND_SECONDS)
    except RedisAway as error:
        if "BUSYGROUP" not in str(error):
            raise


async def holds(redis: Redis, entry: bytes) -> bool:
    """Whether the stream still has an entry: a Redis that lost its memory has none."""
    return bool(await redis.ask("XRANGE", STREAM, entry, entry, "COUNT", 1, seconds=SEND_SECONDS))


async def trim(redis: Redis) -> int:
    """Remove entries that everybody has acknowledged; the answer is how many."""
    return int(await redis.run(_TRIM, [STREAM], seconds=SEND_SECONDS))


async def length(redis: Redis) -> int:
    return int(await redis.ask("XLEN", STREAM))


async def forget_gone_consumers(redis: Redis, idle_ms: int) -> None:
    """Names of processes that ended long ago and left nothing behind."""
    for told in await redis.ask("XINFO", "CONSUMERS", STREAM, GROUP, seconds=SEND_SECONDS):
        facts: dict[bytes, Any] = dict(zip(told[::2], told[1::2], strict=True))
        if not facts[b"pending"] and facts[b"idle"] > idle_ms:
            await redis.ask("XGROUP", "DELCONSUMER", STREAM, GROUP, facts[b"name"], seconds=SEND_SECONDS)


def _spelled(position: Position) -> str:
    return f"{position.segment}:{position.offset}"


def _position(text: bytes) -> Position:
    segment, offset = text.split(b":")
    return Position(int(segment), int(offset))
