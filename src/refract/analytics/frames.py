"""One click as bytes: what is kept of a request, and nothing besides.

    length 2 · kind 1 · flags 1 · target 8 · time 8 · lengths of network 1, agent 2, referrer 2, campaign 2 · the four texts · crc32 4

Little-endian; `length` counts the whole frame and the checksum covers everything before itself. A segment begins with
`segment_head`, so that a file that lost its way is not taken for another spool's.
"""

import re
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

LINK_CLICK: Final = 1
PAGE_VIEW: Final = 2
ENTRY_CLICK: Final = 3
KINDS: Final = frozenset({LINK_CLICK, PAGE_VIEW, ENTRY_CLICK})

PREFETCH: Final = 1  # a prefetch or link preview said so itself: counted with the bots
PRIVATE: Final = 2  # Sec-GPC or DNT: time, target and node, nothing else

MOST_NETWORK: Final = 6  # 48 bits of IPv6
MOST_AGENT: Final = 512
MOST_REFERRER: Final = 2048
MOST_CAMPAIGN: Final = 1280

_FIXED = Struct("<HBBqqBHHH")
_pack = _FIXED.pack
_FRAME_SUM = Struct("<I")
_pack_sum = _FRAME_SUM.pack
_unpack_sum = _FRAME_SUM.unpack_from
_unpack = _FIXED.unpack_from
_new = tuple.__new__
_HEAD = _FIXED.size
_SUM = 4
LEAST_FRAME: Final = _HEAD + _SUM
MOST_FRAME: Final = LEAST_FRAME + MOST_NETWORK + MOST_AGENT + MOST_REFERRER + MOST_CAMPAIGN

_CANDIDATE = re.compile(rb"(?s)(?=..[\x01-\x03][\x00-\x03])")  # overlapping: a frame may begin anywhere

_MAGIC = b"RFCLICK1"
SEGMENT_HEAD: Final = len(_MAGIC) + 8

_CAMPAIGN = (b"utm_source=", b"utm_medium=", b"utm_campaign=", b"utm_term=", b"utm_content=")


class Click(NamedTuple):
    """What one frame says. `offset` is where it begins: with spool and segment, that is the event's id."""

    offset: int
    kind: int
    flags: int
    target: int
    time_ns: int
    network: bytes
    agent: bytes
    referrer: bytes
    campaign: bytes


class Broken(Exception):
    """A frame that was not written like this: the bytes have changed since."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"broken frame at offset {offset}")
        self.offset = offset


def frame(  # noqa: PLR0913, PLR0917 - positional, since this is the hot path
    kind: int, target: int, time_ns: int, flags: int, network: bytes, agent: bytes, referrer: bytes, query: bytes
) -> bytes:
    """The frame of one click. Trimming happens here and nowhere else, so no caller can keep more than is allowed.

    `network` comes from `core.address.network_of`: the address is anonymous before it arrives.
    """
    campaign = b""
    if flags & PRIVATE:
        network = agent = referrer = b""
    else:
        if query:
            campaign = campaign_of(query)
        # `find`, not `in`: on the hot path, and `in` takes the byte for a number first, which fails expensively.
        if referrer.find(b"?") >= 0 or referrer.find(b"#") >= 0:
            referrer = referrer.partition(b"?")[0].partition(b"#")[0]
        if len(referrer) > MOST_REFERRER:
            referrer = referrer[:MOST_REFERRER]
        if len(agent) > MOST_AGENT:
            agent = agent[:MOST_AGENT]
    a, b, c, d = len(network), len(agent), len(referrer), len(campaign)
    if a > MOST_NETWORK:
        raise ValueError("an address must be anonymous before it is kept")
    body = _pack(LEAST_FRAME + a + b + c + d, kind, flags, target, time_ns, a, b, c, d) + network + agent + referrer + campaign
    return body + _pack_sum(crc32(body))


def campaign_of(query: bytes) -> bytes:
    """The five `utm_` parameters of a query string, still encoded; everything else in it is none of our business."""
    if b"utm_" not in query:
        return b""
    kept: list[bytes] = []
    room = MOST_CAMPAIGN
    for part in query.split(b"&"):
        if part.startswith(_CAMPAIGN) and len(part) < room:
            kept.append(part)
            room -= len(part) + 1
    return b"&".join(kept)


def segment_head(spool_id: int) -> bytes:
    return _MAGIC + spool_id.to_bytes(8, "big")


def clicks(data: bytes, base: int) -> Iterator[Click]:
    """The whole frames at the beginning of `data`, which was read at offset `base`; an incomplete one at the end is left alone.

    Raises `Broken` at the first frame that cannot have been written so.
    """
    at, end = 0, len(data)
    while end - at >= 2:
        length = frame_length(data, at, base)
        if end - at < length:
            return
        last = at + length - _SUM
        if crc32(data[at:last]) != _unpack_sum(data, last)[0]:
            raise Broken(base + at)
        _, kind, flags, target, time_ns, network, agent, referrer, campaign = _unpack(data, at)
        first = at + _HEAD
        second = first + network
        third = second + agent
        fourth = third + referrer
        if fourth + campaign != last or kind not in KINDS:
            raise Broken(base + at)
        texts = data[first:second], data[second:third], data[third:fourth], data[fourth:last]
        yield _new(Click, (base + at, kind, flags, target, time_ns, *texts))  # what `Click(…)` does, in half the time
        at += length


def frame_length(data: bytes, at: int, base: int) -> int:
    length = data[at] | data[at + 1] << 8
    if not LEAST_FRAME <= length <= MOST_FRAME:
        raise Broken(base + at)
    return length


def next_frame(data: bytes, begin: int) -> int | None:
    """Return where the next whole, unchanged frame begins at or after `begin`, or None.

    Candidates are found by their kind and flags and then judged by lengths and checksum.
    """
    for candidate in _CANDIDATE.finditer(data, begin):
        at = candidate.start()
        if len(data) - at < LEAST_FRAME:
            return None
        length, _, _, _, _, network, agent, referrer, campaign = _unpack(data, at)
        if length != LEAST_FRAME + network + agent + referrer + campaign or at + length > len(data) or length > MOST_FRAME:
            continue
        last = at + length - _SUM
        if crc32(data[at:last]) == _unpack_sum(data, last)[0]:
            return at
    return None


def mended(data: bytes) -> bool:
    """Whether these bytes are one whole frame but for the length it announces."""
    length = len(data)
    if not LEAST_FRAME <= length <= MOST_FRAME:
        return False
    return crc32(length.to_bytes(2, "little") + data[2:-_SUM]) == int.from_bytes(data[-_SUM:], "little")
