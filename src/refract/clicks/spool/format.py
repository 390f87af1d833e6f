"""Binary format of clicks in a spool.

    length 2 · kind 1 · flags 1 · target 8 · time 8
    · lengths of network 1, agent 2, referrer 2, campaign 2 · the four texts · crc32 4

Little-endian; `length` counts the whole frame and the checksum covers everything before itself. A
segment begins with `build_segment_header`, so that a misplaced file is not taken for another
spool's.

The campaign is the `utm_` parameters of the query as they were sent. Its origin is before them: of
a click on another domain than the default one `domain=HOST`, of one that a rule decided about
`rule=NUMBER`, then of one whose visitor prefers a language `language=CODE`. Older versions ignore
them like any other parameter.
"""

import re
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

LINK_CLICK: Final = 1
PAGE_VIEW: Final = 2
ENTRY_CLICK: Final = 3
CLICK_KINDS: Final = frozenset({LINK_CLICK, PAGE_VIEW, ENTRY_CLICK})

PREFETCH: Final = 1  # the request declares itself a prefetch or link preview: counted as a bot
PRIVATE: Final = 2  # Sec-GPC or DNT: only time, target and node are kept

MAX_NETWORK_BYTES: Final = 6  # 48 bits of IPv6
MAX_AGENT_BYTES: Final = 512
MAX_REFERRER_BYTES: Final = 2048
MAX_CAMPAIGN_BYTES: Final = 1280
_DOMAIN_PARAMETER: Final = b"domain="
_RULE_PARAMETER: Final = b"rule="
MAX_RULE_DIGITS: Final = 10

_HEADER = Struct("<HBBqqBHHH")
_pack_header = _HEADER.pack
_CHECKSUM = Struct("<I")
_pack_checksum = _CHECKSUM.pack
_unpack_checksum = _CHECKSUM.unpack_from
_unpack_header = _HEADER.unpack_from
_unpack_time = Struct("<q").unpack_from
_TIME_OFFSET = 12
_new_tuple = tuple.__new__
_HEADER_BYTES = _HEADER.size
_CHECKSUM_BYTES = 4
MIN_FRAME_BYTES: Final = _HEADER_BYTES + _CHECKSUM_BYTES
MAX_FRAME_BYTES: Final = (
    MIN_FRAME_BYTES + MAX_NETWORK_BYTES + MAX_AGENT_BYTES + MAX_REFERRER_BYTES + MAX_CAMPAIGN_BYTES
)

# Overlapping: a frame may begin anywhere.
_FRAME_START = re.compile(rb"(?s)(?=..[\x01-\x03][\x00-\x03])")

_MAGIC = b"RFCLICK1"
SEGMENT_HEADER_BYTES: Final = len(_MAGIC) + 8

_CAMPAIGN_PARAMETERS = (
    b"utm_source=",
    b"utm_medium=",
    b"utm_campaign=",
    b"utm_term=",
    b"utm_content=",
)


class Click(NamedTuple):
    """A decoded frame. `offset` is where it begins: with spool and segment it is the event's id."""

    offset: int
    kind: int
    flags: int
    target: int
    time_ns: int
    network: bytes
    agent: bytes
    referrer: bytes
    campaign: bytes


class FrameScan(NamedTuple):
    """The whole, valid frames at the beginning of some bytes."""

    clicks: int
    size: int
    is_broken: bool
    """Whether an invalid frame follows: one whose bytes have changed since it was written."""


def encode_frame(  # noqa: PLR0913, PLR0917 - positional, since this is the hot path
    kind: int,
    target: int,
    time_ns: int,
    flags: int,
    network: bytes,
    agent: bytes,
    referrer: bytes,
    query: bytes,
    origin: bytes = b"",
    language: bytes = b"",
) -> bytes:
    """Encode one click as a frame.

    Trimming happens only here, so that no caller can store more than is allowed. `network` comes
    from `core.ip_addresses`: it is anonymous before it arrives here; `origin` from `encode_origin`,
    `language` from `encode_language`.
    """
    campaign = origin
    if flags & PRIVATE:
        network = agent = referrer = b""
        if origin:  # the rule would tell what it asks about
            campaign = encode_domain(extract_domain(origin) or "")
    else:
        if language:
            campaign = b"%b&%b" % (origin, language) if origin else language
        if query and (found := extract_campaign(query, MAX_CAMPAIGN_BYTES - len(campaign))):
            campaign = b"%b&%b" % (campaign, found) if campaign else found
        if referrer:  # searching first would take longer
            referrer = referrer.partition(b"?")[0].partition(b"#")[0]
            if len(referrer) > MAX_REFERRER_BYTES:
                referrer = referrer[:MAX_REFERRER_BYTES]
        if len(agent) > MAX_AGENT_BYTES:
            agent = agent[:MAX_AGENT_BYTES]
    a, b, c, d = len(network), len(agent), len(referrer), len(campaign)
    if a > MAX_NETWORK_BYTES:
        raise ValueError("an address must be anonymous before it is kept")
    body = (
        _pack_header(MIN_FRAME_BYTES + a + b + c + d, kind, flags, target, time_ns, a, b, c, d)
        + network
        + agent
        + referrer
        + campaign
    )
    return body + _pack_checksum(crc32(body))


def encode_domain(host: str) -> bytes:
    """Return what a click says about its domain: nothing about the default one, without a host."""
    return _DOMAIN_PARAMETER + host.encode() if host else b""


def encode_origin(host: str, rule: int | None) -> bytes:
    """Return what a click says about its domain and the rule that decided."""
    domain = encode_domain(host)
    if rule is None:
        return domain
    return b"%b%b%d" % (domain + b"&" if domain else b"", _RULE_PARAMETER, rule)


def extract_rule(campaign: bytes) -> int | None:
    """Return the number of the rule that decided about a click, or None."""
    for part in campaign.split(b"&", 2)[:2]:
        if part.startswith(_RULE_PARAMETER):
            number = part[len(_RULE_PARAMETER) :]
            return int(number) if number.isdigit() and len(number) <= MAX_RULE_DIGITS else None
    return None


def extract_domain(campaign: bytes) -> str | None:
    """Return the host of a click's domain; None for the default one."""
    first = campaign.partition(b"&")[0]
    return first[len(_DOMAIN_PARAMETER) :].decode() if first.startswith(_DOMAIN_PARAMETER) else None


def extract_campaign(query: bytes, room: int = MAX_CAMPAIGN_BYTES) -> bytes:
    """Return the five `utm_` parameters of a query string, still encoded."""
    if b"utm_" not in query:
        return b""
    kept: list[bytes] = []
    for part in query.split(b"&"):
        if part.startswith(_CAMPAIGN_PARAMETERS) and len(part) < room:
            kept.append(part)
            room -= len(part) + 1
    return b"&".join(kept)


def build_segment_header(spool_id: int) -> bytes:
    return _MAGIC + spool_id.to_bytes(8, "big")


def scan_frames(data: bytes, limit: int) -> FrameScan:
    """Return how far whole, valid frames reach from the beginning of `data`.

    An incomplete frame at the end is not broken: the rest of it may follow.
    """
    at, end, clicks = 0, len(data), 0
    while clicks < limit and end - at >= 2:
        length = data[at] | data[at + 1] << 8
        if not MIN_FRAME_BYTES <= length <= MAX_FRAME_BYTES:
            return FrameScan(clicks, at, is_broken=True)
        if end - at < length:
            break
        last = at + length - _CHECKSUM_BYTES
        _, kind, _, _, _, network, agent, referrer, campaign = _unpack_header(data, at)
        if (
            crc32(data[at:last]) != _unpack_checksum(data, last)[0]
            or MIN_FRAME_BYTES + network + agent + referrer + campaign != length
            or kind not in CLICK_KINDS
        ):
            return FrameScan(clicks, at, is_broken=True)
        at += length
        clicks += 1
    return FrameScan(clicks, at, is_broken=False)


def decode_click(frames: bytes, at: int, base: int) -> Click:
    """Return the click of a valid frame at place `at` of bytes that begin at offset `base`."""
    length, kind, flags, target, time_ns, network, agent, referrer, _ = _unpack_header(frames, at)
    first = at + _HEADER_BYTES
    second = first + network
    third = second + agent
    fourth = third + referrer
    last = at + length - _CHECKSUM_BYTES
    texts = frames[first:second], frames[second:third], frames[third:fourth], frames[fourth:last]
    # The same as `Click(…)`, in half the time.
    return _new_tuple(Click, (base + at, kind, flags, target, time_ns, *texts))


def decode_clicks(frames: bytes, base: int) -> Iterator[Click]:
    """Yield the clicks of valid frames, which were read at offset `base`."""
    at = 0
    while at < len(frames):
        yield decode_click(frames, at, base)
        at += read_frame_length(frames, at)


def read_times(frames: bytes) -> Iterator[int]:
    """Yield the times of valid frames, in nanoseconds."""
    at = 0
    while at < len(frames):
        yield _unpack_time(frames, at + _TIME_OFFSET)[0]
        at += read_frame_length(frames, at)


def read_frame_length(frames: bytes, at: int) -> int:
    return frames[at] | frames[at + 1] << 8


def find_next_frame(data: bytes, begin: int) -> int | None:
    """Return where the next whole, valid frame begins at or after `begin`, or None.

    Candidates are found by kind and flags, then checked by lengths and checksum.
    """
    for candidate in _FRAME_START.finditer(data, begin):
        at = candidate.start()
        if len(data) - at < MIN_FRAME_BYTES:
            return None
        length, _, _, _, _, network, agent, referrer, campaign = _unpack_header(data, at)
        if (
            length != MIN_FRAME_BYTES + network + agent + referrer + campaign
            or at + length > len(data)
            or length > MAX_FRAME_BYTES
        ):
            continue
        last = at + length - _CHECKSUM_BYTES
        if crc32(data[at:last]) == _unpack_checksum(data, last)[0]:
            return at
    return None


def is_frame_with_bad_length(data: bytes) -> bool:
    """Return whether these bytes are one whole frame except for its length field."""
    length = len(data)
    if not MIN_FRAME_BYTES <= length <= MAX_FRAME_BYTES:
        return False
    return crc32(length.to_bytes(2, "little") + data[2:-_CHECKSUM_BYTES]) == int.from_bytes(
        data[-_CHECKSUM_BYTES:], "little"
    )
