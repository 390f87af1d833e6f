"""Clicks as a test remembers them, and the naive count of their expected results."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from iptocc import country_code

from refract.clicks.languages import UNKNOWN_LANGUAGE
from refract.clicks.rollups.breakdowns import DEFAULT_DOMAIN, DIMENSIONS, NO_RULE
from refract.clicks.spool.format import PREFETCH, PRIVATE, encode_frame, encode_origin
from refract.clicks.spool.languages import encode_language
from refract.core.ip_addresses import format_anonymous_address

DAY = 86_400
_SAFARI = b"AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1"
AGENTS = {
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0": (
        "desktop",
        "Firefox",
        "Windows",
    ),
    b"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) " + _SAFARI: (
        "mobile",
        "Mobile Safari",
        "iOS",
    ),
    b"Mozilla/5.0 (iPad; CPU OS 16_5 like Mac OS X) " + _SAFARI: ("tablet", "Mobile Safari", "iOS"),
    b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": (
        "bot",
        "Googlebot",
        "",
    ),
    b"": ("desktop", "", ""),
    b"something else": ("desktop", "", ""),
}
NETWORKS = (b"\x08\x08\x08", b"\x08\x08\x09", b"\x0a\x00\x00", b"\x20\x01\x48\x60\x48\x60", b"")
REFERRERS = {
    b"": "direct",
    b"https://news.example.org/a": "news.example.org",
    b"https://Mail.example/": "mail.example",
    b"nonsense": "direct",
}
CAMPAIGNS = {
    b"": "",
    b"utm_campaign=spring+sale&utm_source=mail": "spring sale",
    b"utm_source=x": "",
}
DOMAINS = ("", "sho.rt", "go.example.org")
LANGUAGES = {
    b"": UNKNOWN_LANGUAGE,
    b"de-CH,fr;q=0.9": "de",
    b"en;q=0.3, zh-Hant-TW;q=0.8": "zh",
    b"qqq": UNKNOWN_LANGUAGE,
}
RULES = (None, 1, 12)


@dataclass(frozen=True)
class Sent:
    """A click before it is ingested."""

    at: int  # seconds
    target: int
    kind: int
    flags: int
    network: bytes
    agent: bytes
    referrer: bytes
    campaign: bytes
    domain: str = ""
    language: bytes = b""
    rule: int | None = None

    def framed(self) -> bytes:
        return encode_frame(
            self.kind,
            self.target,
            self.at * 1_000_000_000,
            self.flags,
            self.network,
            self.agent,
            self.referrer,
            self.campaign,
            encode_origin(self.domain, self.rule),
            encode_language(self.language),
        )


@dataclass(frozen=True)
class Counted:
    """A click as it must be counted: when, and by which salt of its day."""

    sent: Sent
    at: int
    salt: int

    @property
    def bot(self) -> bool:
        told = not self.sent.flags & PRIVATE and AGENTS[self.sent.agent][0] == "bot"
        return told or bool(self.sent.flags & PREFETCH)

    @property
    def private(self) -> bool:
        return bool(self.sent.flags & PRIVATE) and not self.bot

    @property
    def visitor(self) -> tuple[object, ...] | None:
        if self.bot or self.private:
            return None
        return self.sent.network, self.sent.agent, self.at // DAY, self.salt

    def value(self, dimension: str, node: str) -> str:
        device, browser, system = AGENTS[self.sent.agent]
        address = format_anonymous_address(self.sent.network)
        return {
            "devices": device,
            "referrers": REFERRERS[self.sent.referrer],
            "countries": (country_code(address) if address else None) or "XX",
            "cities": "",
            "campaigns": CAMPAIGNS[self.sent.campaign],
            "browsers": browser,
            "systems": system,
            "nodes": node,
            "domains": self.sent.domain or DEFAULT_DOMAIN,
            "languages": LANGUAGES[self.sent.language],
            "rules": NO_RULE if self.sent.rule is None else str(self.sent.rule),
        }[dimension]


class Totals(NamedTuple):
    """Return clicks of people, bots, and unique visitors."""

    people: int
    bots: int
    uniques: int


def counts(clicks: list[Counted]) -> Totals:
    people = [click for click in clicks if not click.bot]
    visitors = {click.visitor for click in clicks} - {None}
    return Totals(len(people), len(clicks) - len(people), len(visitors))


def breakdowns(clicks: list[Counted], node: str) -> dict[str, dict[str, int]]:
    told = [click for click in clicks if click.visitor]
    found = {name: Counter(click.value(name, node) for click in told) for name in DIMENSIONS}
    return {
        name: {value: number for value, number in values.items() if value}
        for name, values in found.items()
    }


class SaltModel:
    """Return the salt of a day: another one after 48 hours."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[int, int]] = {}

    def of(self, day: int, now: int) -> int:
        number, made = self._made.get(day, (0, 0))
        if not number or made + int(timedelta(hours=48).total_seconds()) <= now:
            number, made = number + 1, now
            self._made[day] = number, made
        return number
