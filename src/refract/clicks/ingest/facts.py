"""Extraction of the stored facts from a click. None of them identifies a person."""

from hashlib import blake2b
from typing import Any, Final
from urllib.parse import parse_qsl

from ada_url import URL

from refract.clicks.ingest.agents import BOT_DEVICE, UserAgentParser, sanitize_text
from refract.clicks.ingest.bounded_cache import BoundedCache
from refract.clicks.ingest.places import PlaceLookup
from refract.clicks.rollups.breakdowns import build_breakdown_key
from refract.clicks.rollups.sketches import HASH_BYTES
from refract.clicks.spool.format import PREFETCH, PRIVATE, Click
from refract.core.ip_addresses import format_anonymous_address

DIRECT_REFERRER: Final = "direct"
MAX_CLOCK_SKEW_MICROSECONDS: Final = 60_000_000
MAX_CACHED_TEXTS: Final = 8192
MAX_CACHED_NETWORKS: Final = 65_536
_CAMPAIGN_COLUMNS: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
_NO_CAMPAIGN: Final[tuple[tuple[str | None, ...], tuple[str, ...]]] = (
    (None,) * len(_CAMPAIGN_COLUMNS),
    (),
)

FACT_COLUMNS: Final = (
    "kind", "target_id", "bot", "private", "network", "country_code", "country", "city", "latitude",
    "longitude", "user_agent", "referrer", "referrer_host", *_CAMPAIGN_COLUMNS, "device", "browser",
    "browser_version", "system", "system_version",
)  # fmt: skip
"""The columns of an event that are derived from the request."""
_NO_FACTS: Final = (None,) * (len(FACT_COLUMNS) - 9)


ClickFacts = tuple[tuple[Any, ...], bool, bool, tuple[str, ...], bytes]
"""One click: values of `FACT_COLUMNS`, is it a bot's, is it private, breakdown keys, visitor bytes.

Bots and private clicks have neither breakdown keys nor visitor bytes. A plain tuple, since there is
one per click.
"""


class FactsExtractor:
    """Extracts facts from clicks. Slow steps are cached, with bounded memory."""

    def __init__(self, agents: UserAgentParser, places: PlaceLookup) -> None:
        self._agents = agents
        self._networks = BoundedCache(
            lambda network: _describe_network(network, places), MAX_CACHED_NETWORKS
        )
        self._referrers = BoundedCache(_describe_referrer, MAX_CACHED_TEXTS)
        self._campaigns = BoundedCache(_parse_campaign, MAX_CACHED_TEXTS)

    def invalidate_places(self) -> None:
        """Forget the places of networks, after the GeoIP file has changed."""
        self._networks.clear()

    def extract_facts(self, click: Click) -> ClickFacts:
        _, kind, flags, target, _, network, agent, referrer, campaign = click
        if flags & PRIVATE:
            return _build_private_facts(kind, target, flags)
        text, visitor, device, browser, browser_version, system, system_version, agent_keys = (
            self._agents[agent]
        )
        if flags & PREFETCH:
            device = BOT_DEVICE
        bot = device == BOT_DEVICE
        place, place_keys = self._networks[network]
        referrer_facts, referrer_keys = self._referrers[referrer]
        campaign_facts, campaign_keys = self._campaigns[campaign] if campaign else _NO_CAMPAIGN
        row = (
            kind, target, bot, False, *place, text, *referrer_facts, *campaign_facts,
            device, browser, browser_version, system, system_version,
        )  # fmt: skip
        if bot:
            return row, True, False, (), b""
        return (
            row,
            False,
            False,
            agent_keys + place_keys + referrer_keys + campaign_keys,
            network + visitor,
        )


def _build_private_facts(kind: int, target: int, flags: int) -> ClickFacts:
    """Return time, target and node only. A prefetch still counts as a bot."""
    bot = bool(flags & PREFETCH)
    device = BOT_DEVICE if bot else "desktop"
    return (kind, target, bot, True, *_NO_FACTS, device, None, None, None, None), bot, True, (), b""


def hash_visitor(visitor: bytes, salt: bytes) -> int:
    """Return a hash that is meaningless without the salt of the day."""
    return int.from_bytes(blake2b(visitor, key=salt, digest_size=HASH_BYTES).digest(), "big")


def to_microseconds(time_ns: int, received: int) -> int:
    """Return when a click happened, or `received` if its clock is more than a minute ahead."""
    at = time_ns // 1000
    return received if at > received + MAX_CLOCK_SKEW_MICROSECONDS or at < 0 else at


def _describe_network(
    network: bytes, places: PlaceLookup
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    place = places[network]
    return (format_anonymous_address(network), *place), place.breakdown_keys


def _describe_referrer(raw: bytes) -> tuple[tuple[str | None, str], tuple[str, ...]]:
    referrer = sanitize_text(raw, 2048)
    host = parse_referrer_host(referrer)
    return (referrer or None, host), (build_breakdown_key("referrers", host),)


def parse_referrer_host(referrer: str) -> str:
    """Return the referrer's host, or `direct` if it is absent or invalid."""
    try:
        return (URL(referrer).hostname or DIRECT_REFERRER)[:255] if referrer else DIRECT_REFERRER
    except ValueError:
        return DIRECT_REFERRER


def _parse_campaign(raw: bytes) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
    pairs = parse_qsl(raw.decode("utf-8", "replace"), errors="replace")
    found = {name: value.replace("\x00", "")[:255] for name, value in reversed(pairs)}
    values = tuple(found.get(name) or None for name in _CAMPAIGN_COLUMNS)
    return values, (build_breakdown_key("campaigns", values[2]),) if values[2] else ()
