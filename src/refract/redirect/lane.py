"""Plain hits: whole GET requests for cached redirects, answered from the bytes as they arrive.

`PythonHitResponder` is the reference and the fallback. `_lane.pyx` does the same in Cython, for
more requests, and replaces it where it has been compiled (`tools/extension.py`). Neither handles
every request: the others are parsed by `redirect.protocol`, with the same clicks and responses.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol

from refract.clicks.spool.format import encode_frame
from refract.clicks.spool.languages import encode_language
from refract.clicks.spool.writer import ResponseTransport, TurnBuffer
from refract.core.compiled import choose_compiled
from refract.limits.shared_limits import MissLimit
from refract.redirect.cache import CachedRedirect, RedirectCache
from refract.web.connections import HostPrefixes
from refract.web.protocol import MAX_BYTES_PER_TURN

MODULE_NAME: Final = "refract.redirect._lane"

FindNetwork = Callable[[Iterable[tuple[bytes, bytes]]], bytes]
LaneName = Literal["compiled", "python"]


class LaneState(Protocol):
    """The state that the connections of a process share."""

    cache: RedirectCache
    turn: TurnBuffer
    hosts: HostPrefixes
    misses: MissLimit | None
    now_ns: Callable[[], int]


class HitResponder(Protocol):
    """The plain hits of one connection."""

    def answer(self, data: bytes) -> bool:
        """Queue click and response of a plain hit. Return False if it is anything else."""


class HitResponderClass(Protocol):
    """How a responder is made. `find_network` is given if the peer is a trusted proxy."""

    def __call__(
        self,
        shared: LaneState,
        transport: ResponseTransport,
        network: bytes,
        find_network: FindNetwork | None,
    ) -> HitResponder: ...


_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]*+"
_VALUE = rb"[\x20-\x7e]*+"  # one range is matched fastest; a value with other bytes is parsed
_REST = _TOKEN + rb":" + _VALUE + rb"\r\n"
_KEPT = rb":[ \t]*+(" + _VALUE + rb")\r\n"

# The usual headers of browsers, in any order after `Host`. Headers that could change what is
# counted or sent do not match in any spelling: names are distinguished by their first letters.
# All quantifiers are possessive, so that the time is linear.
_match_plain_get = re.compile(
    rb"GET (/[!-\"$-~]*+) HTTP/1\.1\r\n[Hh]ost"
    + _KEPT
    + rb"(?:[BFGI-OQVWYZbfgi-oqvwyz]"
    + _REST
    + rb"|[Aa](?:ccept(?::"
    + _VALUE
    + rb"\r\n|-(?:[Ll]anguage"
    + _KEPT
    + rb"|[CEce]"
    + _REST
    + rb"))|[LUlu]"
    + _REST
    + rb")"
    + rb"|[Ss]ec-[CcFf]"
    + _REST
    + rb"|[Uu](?:ser-[Aa]gent"
    + _KEPT
    + rb"|pgrade-"
    + _REST
    + rb")|[Rr]eferer"
    + _KEPT
    + rb"|[Cc](?:onnection:[ \t]*+[Kk]eep-[Aa]live\r\n|(?:ache-|ookie)"
    + _REST
    + rb")|[Pp]r[ai]"
    + _REST
    + rb")*+\r\n"
).fullmatch


class PythonHitResponder:
    """The plain hits of one connection, by a regular expression.

    Behind a proxy every request names its client in a header, which only the parser reads.
    """

    __slots__ = (
        "_cache",
        "_find",
        "_get_prefix",
        "_misses",
        "_network",
        "_now_ns",
        "_transport",
        "_turn",
    )

    def __init__(
        self,
        shared: LaneState,
        transport: ResponseTransport,
        network: bytes,
        find_network: FindNetwork | None,
    ) -> None:
        self._cache = shared.cache
        self._get_prefix = shared.hosts.get
        self._misses = shared.misses
        self._now_ns = shared.now_ns
        self._turn = shared.turn
        self._find = shared.cache.paths.get if find_network is None else _find_nothing
        self._transport = transport
        self._network = network

    def answer(self, data: bytes) -> bool:
        """Queue click and response of a plain hit. Return False if it is anything else."""
        found = _match_plain_get(data) if len(data) <= MAX_BYTES_PER_TURN else None
        if found is None:
            return False
        url, host, language, agent, referrer = found.groups(b"")
        prefix = self._get_prefix(host)
        if prefix is None:
            return False
        url = prefix + url
        entry, query = self._find(url), b""
        if entry is None:
            entry, query = self._find_without_query(url)
        now = self._now_ns()
        if (
            entry is None
            or now >= entry.expires_ns
            or now >= self._cache.trusted_until_ns
            or (entry.guessable and self._are_codes_refused(now))
        ):
            return False
        decided = (
            (entry.head, entry.domain)
            if entry.rules is None
            else entry.rules.apply(now, self._network, agent, language, referrer, query)
        )
        if decided is None:
            return False
        entry.seen = True
        head, origin = decided
        turn = self._turn
        if turn.answers:
            turn.answers.append((self._transport, head))
        else:
            turn.add_response(self._transport, head)
        spoken = encode_language(language)
        frame = encode_frame(
            entry.kind, entry.target, now, 0, self._network, agent, referrer, query, origin, spoken
        )
        turn.frames.append(frame)
        return True

    def _find_without_query(self, url: bytes) -> tuple[CachedRedirect | None, bytes]:
        """Return the entry of a URL whose query is not part of the key, and that query."""
        path, _, query = url.partition(b"?")
        entry = self._find(path) if query else None
        return (None if entry is None or entry.forwards_query else entry), query

    def _are_codes_refused(self, now: int) -> bool:
        return self._misses is not None and now < self._misses.exhausted_until_ns


def _find_nothing(_path: bytes) -> None:
    return None


_module, WHY_NOT_COMPILED = choose_compiled(MODULE_NAME)
LANE: LaneName = "python" if _module is None else "compiled"
create_hit_responder: HitResponderClass = (
    PythonHitResponder if _module is None else _module.HitResponder
)
