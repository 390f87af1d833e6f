"""From what a frame holds to what is kept: nothing in it can tell who somebody is."""

from hashlib import blake2b
from typing import Any, Final
from urllib.parse import parse_qsl

from ada_url import URL

from refract.analytics.agents import BOT, Agents, storable
from refract.analytics.frames import PREFETCH, PRIVATE, Click
from refract.analytics.memory import Memory
from refract.analytics.places import Places
from refract.core.address import spelled

DIRECT: Final = "direct"
FUTURE_MICROSECONDS: Final = 60_000_000
MOST_REMEMBERED: Final = 8192
_CAMPAIGN: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
_NO_CAMPAIGN: Final = (None,) * len(_CAMPAIGN)

Campaign = tuple[str | None, ...]
FACTS: Final = (
    "kind", "target_id", "bot", "private", "network", "user_agent", "referrer", "referrer_host", *_CAMPAIGN,
    "country_code", "country", "city", "latitude", "longitude", "device", "browser", "browser_version", "system", "system_version",
)  # fmt: skip
"""The columns of an event that follow from the request."""
_NOTHING: Final = (None,) * (len(FACTS) - 9)


Facts = tuple[tuple[Any, ...], bool, bool, tuple[str | None, ...], bytes]
"""One click: the values of `FACTS`, whether it is a bot's, whether it is private, its value in each dimension but the node's, and what
tells its visitor from others. Bots and private people have neither values nor a visitor. A plain tuple, since there is one per click."""


class Reader:
    """Reads clicks, with a bounded memory of what it has met before. All that is slow is remembered."""

    def __init__(self, agents: Agents, places: Places) -> None:
        self._agents = agents
        self._places = places
        self._referrers = Memory(_referrer_of, MOST_REMEMBERED)
        self._campaigns = Memory(_campaign_of, MOST_REMEMBERED)
        self._networks = Memory(spelled, 8 * MOST_REMEMBERED)

    def facts(self, click: Click) -> Facts:
        _, kind, flags, target, _, network, raw_agent, raw_referrer, raw_campaign = click
        if flags & PRIVATE:
            return _private(kind, target, flags)
        text, key, device, browser, browser_version, system, system_version = self._agents[raw_agent]
        if flags & PREFETCH:
            device = BOT
        bot = device == BOT
        referrer, host = self._referrers[raw_referrer]
        campaign = self._campaigns[raw_campaign] if raw_campaign else _NO_CAMPAIGN
        place = self._places[network]
        row = (
            kind, target, bot, False, self._networks[network], text, referrer, host, *campaign,
            *place, device, browser, browser_version, system, system_version,
        )  # fmt: skip
        if bot:
            return row, True, False, (), b""
        return row, False, False, (device, host, place[0], place.town if place[2] else None, campaign[2], browser, system), network + key


def _private(kind: int, target: int, flags: int) -> Facts:
    """Time, target and node. A prefetch is none the less no person."""
    bot = bool(flags & PREFETCH)
    device = BOT if bot else "desktop"
    return (kind, target, bot, True, *_NOTHING, device, None, None, None, None), bot, True, (), b""


def visitor_hash(visitor: bytes, salt: bytes) -> int:
    """63 bits that mean nothing without the salt of the day."""
    return int.from_bytes(blake2b(visitor, key=salt, digest_size=8).digest(), "big") >> 1


def microseconds_of(time_ns: int, received: int) -> int:
    """When it happened; a clock that runs ahead by more than a minute is not believed."""
    at = time_ns // 1000
    return received if at > received + FUTURE_MICROSECONDS or at < 0 else at


def _referrer_of(raw: bytes) -> tuple[str | None, str]:
    referrer = storable(raw, 2048)
    return referrer or None, host_of(referrer)


def host_of(referrer: str) -> str:
    """The host of the page somebody came from; `direct` when there was none, or none that is one."""
    try:
        return (URL(referrer).hostname or DIRECT)[:255] if referrer else DIRECT
    except ValueError:
        return DIRECT


def _campaign_of(raw: bytes) -> Campaign:
    found = {name: value for name, value in reversed(parse_qsl(raw.decode("utf-8", "replace"), errors="replace")) if value}
    return tuple(found[name].replace("\x00", "")[:255] or None if name in found else None for name in _CAMPAIGN)
