"""From what a frame holds to what is kept: nothing in it can tell who somebody is."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from ada_url import URL

from refract.analytics.agents import BOT, Agents, storable
from refract.analytics.frames import PREFETCH, PRIVATE, Click
from refract.analytics.places import Place, Places
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
"""The columns of an event that follow from the request, in the order of `Facts.row`."""


class Facts(NamedTuple):
    """One click: the values of `FACTS`, its value in each dimension but the node's, and what tells its visitor from others.

    Bots and private people have neither a visitor nor values.
    """

    row: tuple[Any, ...]
    bot: bool
    private: bool
    values: tuple[str | None, ...]
    visitor: bytes


class Reader:
    """Reads clicks, with a bounded memory of what it has met before. All that is slow is remembered."""

    def __init__(self, agents: Agents, places: Places) -> None:
        self._agents = agents
        self._places = places
        self._referrers = _Memory(_referrer_of)
        self._campaigns = _Memory(_campaign_of)
        self._networks = _Memory(spelled)

    def facts(self, click: Click) -> Facts:
        if click.flags & PRIVATE:
            return _private(click)
        agent = self._agents.of(click.agent)
        bot = agent.device == BOT or bool(click.flags & PREFETCH)
        referrer, host = self._referrers.of(click.referrer)
        campaign: Campaign = self._campaigns.of(click.campaign) if click.campaign else _NO_CAMPAIGN
        place: Place = self._places.of(click.network)
        device = BOT if bot else agent.device
        _, _, _, browser, browser_version, system, system_version = agent
        row = (
            click.kind, click.target, bot, False, self._networks.of(click.network), agent.text, referrer, host, *campaign,
            *place, device, browser, browser_version, system, system_version,
        )  # fmt: skip
        if bot:
            return Facts(row, True, False, (), b"")
        values = (device, host, place.country_code, place.town, campaign[2], browser, system)
        return Facts(row, False, False, values, click.network + b"\0" + agent.key)


def _private(click: Click) -> Facts:
    """Time, target and node. A prefetch is none the less no person."""
    bot = bool(click.flags & PREFETCH)
    device = BOT if bot else "desktop"
    row = (click.kind, click.target, bot, True, *(None,) * (len(FACTS) - 9), device, None, None, None, None)
    return Facts(row, bot, True, (), b"")


def visitor_hash(visitor: bytes, salt: bytes) -> int:
    """63 bits that mean nothing without the salt of the day."""
    return int.from_bytes(blake2b(visitor, key=salt, digest_size=8).digest(), "big") >> 1


def microseconds_of(time_ns: int, received: int) -> int:
    """When it happened; a clock that runs ahead by more than a minute is not believed."""
    at = time_ns // 1000
    return received if at > received + FUTURE_MICROSECONDS or at < 0 else at


class _Memory:
    """The answers of a function, a bounded number of them."""

    def __init__(self, ask: Callable[[bytes], Any]) -> None:
        self._ask = ask
        self._known: dict[bytes, Any] = {}

    def of(self, question: bytes) -> Any:
        try:
            return self._known[question]
        except KeyError:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            answer = self._known[question] = self._ask(question)
            return answer


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
