"""From what a frame holds to what is kept: pure, and nothing in it can tell who somebody is."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

from ada_url import URL

from refract.analytics.frames import PREFETCH, PRIVATE, Click
from refract.core.address import spelled

DIRECT: Final = "direct"
_FUTURE: Final = timedelta(minutes=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CAMPAIGN: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
_BOT = re.compile(
    r"bot\b|bot/|crawl|spider|slurp|preview|facebookexternalhit|whatsapp|telegram|embedly|quora|pinterest/|vkshare|skypeuri|mastodon"
    r"|headless|python-|curl/|wget/|httpx|okhttp|go-http|java/|libwww|scrapy|monitor|uptime|lighthouse|pingdom|validator|feed",
    re.IGNORECASE,
)
_TABLET = re.compile(r"ipad|tablet|kindle|silk/|playbook|(android(?!.*mobile))", re.IGNORECASE)
_MOBILE = re.compile(r"mobi|iphone|ipod|android|windows phone|blackberry|opera mini", re.IGNORECASE)


@lru_cache(maxsize=4096)
def device_of(agent: str) -> str:
    """`bot`, `tablet`, `mobile` or `desktop`; an agent that says nothing is taken for a person at a desk."""
    if _BOT.search(agent):
        return "bot"
    if _TABLET.search(agent):
        return "tablet"
    return "mobile" if _MOBILE.search(agent) else "desktop"


@lru_cache(maxsize=4096)
def host_of(referrer: str) -> str:
    """The host of the page somebody came from; `direct` when there was none, or none that is one."""
    try:
        return (URL(referrer).hostname or DIRECT)[:255] if referrer else DIRECT
    except ValueError:
        return DIRECT


@lru_cache(maxsize=1024)
def campaign_of(raw: bytes) -> dict[str, str]:
    pairs = parse_qsl(raw.decode("utf-8", "replace"), errors="replace")
    return {name: _storable(value)[:255] for name, value in reversed(pairs) if name in _CAMPAIGN}


def _storable(text: str) -> str:
    return text.replace("\x00", "")


def moment_of(time_ns: int, received: datetime) -> datetime:
    """When it happened; a clock that runs ahead by more than a minute is not believed."""
    at = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return received if at > received + _FUTURE else at


def facts(click: Click, received: datetime) -> dict[str, Any]:
    """The columns of an event that follow from the request."""
    agent = _storable(click.agent.decode("utf-8", "replace"))[:512]
    referrer = _storable(click.referrer.decode("utf-8", "replace"))[:2048]
    private = bool(click.flags & PRIVATE)
    device = "bot" if click.flags & PREFETCH else "desktop" if private else device_of(agent)
    campaign = campaign_of(click.campaign) if click.campaign else {}
    return {
        "at": moment_of(click.time_ns, received),
        "kind": click.kind,
        "target_id": click.target,
        "bot": device == "bot",
        "private": private,
        "network": spelled(click.network),
        "user_agent": agent or None,
        "referrer": referrer or None,
        "referrer_host": None if private else host_of(referrer),
        **{name: campaign.get(name) for name in _CAMPAIGN},
        "country_code": None if private else "XX",
        "country": None,
        "city": None,
        "latitude": None,
        "longitude": None,
        "device": device,
        "browser": None,
        "system": None,
    }
