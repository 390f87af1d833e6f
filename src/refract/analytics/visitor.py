"""From what a frame holds to what is kept: nothing in it can tell who somebody is."""

from hashlib import blake2b
from typing import Any, Final
from urllib.parse import parse_qsl

from ada_url import URL

from refract.analytics.agents import BOT, Agents, storable
from refract.analytics.frames import PREFETCH, PRIVATE, Click
from refract.analytics.memory import Memory
from refract.analytics.parts import key
from refract.analytics.places import Places
from refract.analytics.sketches import WIDTH
from refract.core.address import spelled

DIRECT: Final = "direct"
FUTURE_MICROSECONDS: Final = 60_000_000
MOST_REMEMBERED: Final = 8192
MOST_NETWORKS: Final = 65_536
_CAMPAIGN: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
_NO_CAMPAIGN: Final[tuple[tuple[str | None, ...], tuple[str, ...]]] = ((None,) * len(_CAMPAIGN), ())

FACTS: Final = (
    "kind", "target_id", "bot", "private", "network", "country_code", "country", "city", "latitude", "longitude",
    "user_agent", "referrer", "referrer_host", *_CAMPAIGN, "device", "browser", "browser_version", "system", "system_version",
)  # fmt: skip
"""The columns of an event that follow from the request."""
_NOTHING: Final = (None,) * (len(FACTS) - 9)


Facts = tuple[tuple[Any, ...], bool, bool, tuple[str, ...], bytes]
"""One click: the values of `FACTS`, whether it is a bot's, whether it is private, the parts it is counted in, and what tells its
visitor from others. Bots and private people have neither parts nor a visitor. A plain tuple, since there is one per click."""


class Reader:
    """Reads clicks, with a bounded memory of what it has met before. All that is slow is remembered."""

    def __init__(self, agents: Agents, places: Places) -> None:
        self._agents = agents
        self._networks = Memory(lambda network: _network_of(network, places), MOST_NETWORKS)
        self._referrers = Memory(_referrer_of, MOST_REMEMBERED)
        self._campaigns = Memory(_campaign_of, MOST_REMEMBERED)

    def forget_places(self) -> None:
        """For when networks are somewhere else now."""
        self._networks.clear()

    def facts(self, click: Click) -> Facts:
        _, kind, flags, target, _, network, agent, referrer, campaign = click
        if flags & PRIVATE:
            return _private(kind, target, flags)
        text, visitor, device, browser, browser_version, system, system_version, its_parts = self._agents[agent]
        if flags & PREFETCH:
            device = BOT
        bot = device == BOT
        where, where_parts = self._networks[network]
        came, came_parts = self._referrers[referrer]
        why, why_parts = self._campaigns[campaign] if campaign else _NO_CAMPAIGN
        row = (
            kind, target, bot, False, *where, text, *came, *why,
            device, browser, browser_version, system, system_version,
        )  # fmt: skip
        if bot:
            return row, True, False, (), b""
        return row, False, False, its_parts + where_parts + came_parts + why_parts, network + visitor


def _private(kind: int, target: int, flags: int) -> Facts:
    """Time, target and node. A prefetch is none the less no person."""
    bot = bool(flags & PREFETCH)
    device = BOT if bot else "desktop"
    return (kind, target, bot, True, *_NOTHING, device, None, None, None, None), bot, True, (), b""


def visitor_hash(visitor: bytes, salt: bytes) -> int:
    """Bits that mean nothing without the salt of the day."""
    return int.from_bytes(blake2b(visitor, key=salt, digest_size=WIDTH).digest(), "big")


def microseconds_of(time_ns: int, received: int) -> int:
    """When it happened; a clock that runs ahead by more than a minute is not believed."""
    at = time_ns // 1000
    return received if at > received + FUTURE_MICROSECONDS or at < 0 else at


def _network_of(network: bytes, places: Places) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    place = places[network]
    return (spelled(network), *place), place.parts


def _referrer_of(raw: bytes) -> tuple[tuple[str | None, str], tuple[str, ...]]:
    referrer = storable(raw, 2048)
    host = host_of(referrer)
    return (referrer or None, host), (key("referrers", host),)


def host_of(referrer: str) -> str:
    """The host of the page somebody came from; `direct` when there was none, or none that is one."""
    try:
        return (URL(referrer).hostname or DIRECT)[:255] if referrer else DIRECT
    except ValueError:
        return DIRECT


def _campaign_of(raw: bytes) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
    pairs = parse_qsl(raw.decode("utf-8", "replace"), errors="replace")
    found = {name: value.replace("\x00", "")[:255] for name, value in reversed(pairs)}
    said = tuple(found.get(name) or None for name in _CAMPAIGN)
    return said, (key("campaigns", said[2]),) if said[2] else ()
