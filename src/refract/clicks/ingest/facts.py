"""Extraction of the stored facts from a click. None of them identifies a person."""

from collections import defaultdict
from datetime import date
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import parse_qsl

from ada_url import URL

from refract.clicks.ingest.agents import (
    BOT_DEVICE,
    MAX_CACHED_AGENTS,
    UserAgentParser,
    sanitize_text,
)
from refract.clicks.ingest.bounded_cache import BoundedCache
from refract.clicks.ingest.places import GeoPlace, PlaceLookup
from refract.clicks.languages import normalize_language
from refract.clicks.models import ClickAgent, ClickCampaign, ClickPlace, ClickReferrer
from refract.clicks.rollups.breakdowns import build_breakdown_key
from refract.clicks.rollups.sketches import HASH_BYTES
from refract.clicks.spool.format import PREFETCH, PRIVATE, Click, extract_domain, extract_rule
from refract.clicks.spool.languages import extract_language
from refract.core.db.types import Model
from refract.core.ip_addresses import format_anonymous_address

DIRECT_REFERRER: Final = "direct"
MAX_CLOCK_SKEW_MICROSECONDS: Final = 60_000_000
MAX_CACHED_TEXTS: Final = 8192
MAX_CACHED_NETWORKS: Final = 65_536
_CAMPAIGN_COLUMNS: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")

FACT_COLUMNS: Final = (
    "kind",
    "target_id",
    "bot",
    "private",
    "network",
    "device",
    "agent_id",
    "geo_id",
    "referrer_id",
    "campaign_id",
)
"""The columns of an event that are derived from the request."""

SharedRows = dict[type[Model], dict[int, tuple[Any, ...]]]
"""Values of shared facts, by table and id."""


ClickFacts = tuple[tuple[Any, ...], bool, bool, tuple[str, ...], bytes]
"""One click: values of `FACT_COLUMNS`, is it a bot's, is it private, breakdown keys, visitor bytes.

Bots and private clicks have neither breakdown keys nor visitor bytes. A plain tuple, since there is
one per click.
"""


class FactsExtractor:
    """Extracts facts from clicks. Slow steps are cached, with bounded memory.

    An event refers to facts that others share. Those that were not in the cache are `unsaved`, and
    must be saved before the events.
    """

    def __init__(self, agents: UserAgentParser, places: PlaceLookup) -> None:
        self._parsed_agents = agents
        self._places = places
        # Facts by bytes of the frame. The compiled gatherer reads them too.
        self.agents = BoundedCache(self._describe_agent, MAX_CACHED_AGENTS)
        self.networks = BoundedCache(self._describe_network, MAX_CACHED_NETWORKS)
        self.referrers = BoundedCache(self._describe_referrer, MAX_CACHED_TEXTS)
        self.campaigns = BoundedCache(self._describe_campaign, MAX_CACHED_TEXTS)
        self._geo_ids: dict[GeoPlace, int | None] = {}
        self._day = date.min
        self.unsaved: SharedRows = defaultdict(dict)

    def begin_day(self, day: date) -> None:
        """Save all facts again on a new day, since facts are kept by the day of their last use."""
        if day != self._day:
            self.reset()
            self._day = day

    def reset(self) -> None:
        """Forget which facts are saved, after a transaction that failed."""
        for cache in (self.agents, self.networks, self.referrers, self.campaigns):
            cache.clear()
        self._geo_ids.clear()
        self.unsaved.clear()

    def invalidate_places(self) -> None:
        """Forget the places of networks, after the GeoIP file has changed."""
        self.networks.clear()

    def extract_facts(self, click: Click) -> ClickFacts:
        _, kind, flags, target, _, network, agent, referrer, campaign = click
        if flags & PRIVATE:
            return _build_private_facts(kind, target, flags)
        agent_id, visitor, device, bot, agent_keys = self.agents[agent]
        if flags & PREFETCH:
            device, bot = BOT_DEVICE, True
        address, geo_id, place_keys = self.networks[network]
        referrer_id, referrer_keys = self.referrers[referrer]
        campaign_id, campaign_keys = self.campaigns[campaign]
        row = (
            kind, target, bot, False, address, device, agent_id, geo_id, referrer_id, campaign_id,
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

    def _share(self, model: type[Model], *values: str | float | None) -> int | None:
        """Return the id of shared facts; None if there are none."""
        if all(value is None for value in values):
            return None
        digest = blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        fact_id = int.from_bytes(digest, "big") >> 1  # fits into a signed column
        self.unsaved[model][fact_id] = values
        return fact_id

    def _describe_agent(self, raw: bytes) -> tuple[int | None, bytes, str, bool, tuple[str, ...]]:
        text, key, device, browser, browser_version, system, system_version, breakdown_keys = (
            self._parsed_agents[raw]
        )
        agent_id = self._share(ClickAgent, text, browser, browser_version, system, system_version)
        return agent_id, key, device, device == BOT_DEVICE, breakdown_keys

    def _describe_network(self, network: bytes) -> tuple[str | None, int | None, tuple[str, ...]]:
        place = self._places[network]
        if place not in self._geo_ids:  # many networks share a place
            if len(self._geo_ids) >= MAX_CACHED_TEXTS:
                self._geo_ids.clear()
            self._geo_ids[place] = self._share(ClickPlace, *place)
        return format_anonymous_address(network), self._geo_ids[place], place.breakdown_keys

    def _describe_referrer(self, raw: bytes) -> tuple[int | None, tuple[str, ...]]:
        referrer = sanitize_text(raw, 2048)
        host = parse_referrer_host(referrer)
        referrer_id = self._share(ClickReferrer, referrer or None, host)
        return referrer_id, (build_breakdown_key("referrers", host),)

    def _describe_campaign(self, raw: bytes) -> tuple[int | None, tuple[str, ...]]:
        values, domain = _parse_campaign(raw), extract_domain(raw)
        language = normalize_language(extract_language(raw))
        number = extract_rule(raw)
        rule = None if number is None else str(number)
        named = {"campaigns": values[2], "domains": domain, "languages": language, "rules": rule}
        keys = tuple(build_breakdown_key(name, value) for name, value in named.items() if value)
        return self._share(ClickCampaign, *values, domain, language, rule), keys


def _build_private_facts(kind: int, target: int, flags: int) -> ClickFacts:
    """Return time, target and node only. A prefetch still counts as a bot."""
    bot = bool(flags & PREFETCH)
    device = BOT_DEVICE if bot else "desktop"
    return (kind, target, bot, True, None, device, None, None, None, None), bot, True, (), b""


def hash_visitor(visitor: bytes, salt: bytes) -> bytes:
    """Return a hash that is meaningless without the salt of the day."""
    return blake2b(visitor, key=salt, digest_size=HASH_BYTES).digest()


def to_microseconds(time_ns: int, received: int) -> int:
    """Return when a click happened, or `received` if its clock is more than a minute ahead."""
    at = time_ns // 1000
    return received if at > received + MAX_CLOCK_SKEW_MICROSECONDS or at < 0 else at


def parse_referrer_host(referrer: str) -> str:
    """Return the referrer's host, or `direct` if it is absent or invalid."""
    try:
        return (URL(referrer).hostname or DIRECT_REFERRER)[:255] if referrer else DIRECT_REFERRER
    except ValueError:
        return DIRECT_REFERRER


def _parse_campaign(raw: bytes) -> tuple[str | None, ...]:
    pairs = parse_qsl(raw.decode("utf-8", "replace"), errors="replace")
    found = {name: value.replace("\x00", "")[:255] for name, value in reversed(pairs)}
    return tuple(found.get(name) or None for name in _CAMPAIGN_COLUMNS)
