"""What rules ask about visitors: device, country, languages, parameters and a daily number."""

import asyncio
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

from starlette.types import Scope

from refract.clicks.countries import UNKNOWN_COUNTRY
from refract.clicks.ingest.agents import BOT_DEVICE, MAX_CACHED_AGENTS, detect_device
from refract.clicks.ingest.bounded_cache import BoundedCache
from refract.clicks.ingest.places import REFRESH_INTERVAL, PlaceLookup
from refract.clicks.spool.format import PREFETCH
from refract.clicks.spool.request_flags import parse_flags
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.links.preview_cards import is_preview_crawler

NUMBERS: Final = 10_000
"""A visitor's number for a link and a day is below this: shares are exact to 0.01 percent."""
MIN_LANGUAGE_QUALITY: Final = 0.9
MAX_CACHED_FACTS: Final = 8192
MAX_AGENT_BYTES: Final = 512
MAX_LANGUAGE_BYTES: Final = 200
MAX_CACHED_REFERRER_BYTES: Final = 512
MAX_PARAMETERS: Final = 100
_DAY_NS: Final = 86_400 * 10**9

_SYSTEM_PATTERNS: Final = (
    ("windows", re.compile(rb"windows", re.IGNORECASE)),
    ("ios", re.compile(rb"iphone|ipad|ipod", re.IGNORECASE)),
    ("android", re.compile(rb"android", re.IGNORECASE)),
    ("macos", re.compile(rb"macintosh|mac os x", re.IGNORECASE)),
    ("linux", re.compile(rb"linux|x11(?!; cros)", re.IGNORECASE)),
)
_BROWSER_PATTERNS: Final = (
    ("edge", re.compile(rb"\bEdg(?:e|A|iOS)?/")),
    ("opera", re.compile(rb"\bOP[RTX]/|Opera")),
    ("samsung", re.compile(rb"SamsungBrowser/")),
    ("firefox", re.compile(rb"\b(?:Firefox|FxiOS)/")),
    ("chrome", re.compile(rb"\b(?:Chrome|Chromium|CriOS)/")),
    ("safari", re.compile(rb"Version/.*Safari/")),
)
_match_referrer = re.compile(rb"[Hh][Tt][Tt][Pp][Ss]?://(?:[^/?#@]*@)?([^/?#:@]+)").match
_match_quality = re.compile(r"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)").fullmatch


class AgentTraits(NamedTuple):
    """What rules ask about a user agent."""

    device: str
    system: str
    browser: str


def classify_agent(raw: bytes) -> AgentTraits:
    """Return device, system and browser of a user agent. Devices are those of analytics."""
    return AgentTraits(
        detect_device(raw.decode("utf-8", "replace")) if raw else "desktop",
        next((name for name, pattern in _SYSTEM_PATTERNS if pattern.search(raw)), "other"),
        next((name for name, pattern in _BROWSER_PATTERNS if pattern.search(raw)), "other"),
    )


def list_accepted_languages(raw: bytes) -> frozenset[str]:
    """Return the wanted languages of an Accept-Language header, each with the more general ones.

    That is the look-up of RFC 4647 in the other direction. A language that is wanted less than 0.9
    is no reason to be sent elsewhere: browsers list all that their user can read.
    """
    accepted = set()
    for part in raw.decode("latin-1").lower().split(","):
        tag, *parameters = (piece.strip() for piece in part.split(";"))
        qualities = [found[1] for piece in parameters if (found := _match_quality(piece))]
        if parameters and (not qualities or float(qualities[0]) < MIN_LANGUAGE_QUALITY):
            continue
        pieces = tag.split("-")
        accepted |= {"-".join(pieces[:length]) for length in range(1, len(pieces) + 1)}
    return frozenset(accepted - {"", "*"})


def parse_parameters(query: bytes) -> Mapping[str, list[str]]:
    """Return the parameters of a query. Only the first ones of a long query count."""
    found: dict[str, list[str]] = {}
    for part in query.split(b"&", MAX_PARAMETERS)[:MAX_PARAMETERS]:
        name, _, value = part.decode("utf-8", "replace").partition("=")
        found.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    return found


def parse_referrer_host(raw: bytes) -> str:
    """Return the host of a referrer, empty if it has none."""
    found = _match_referrer(raw)
    return found[1].decode("latin-1").rstrip(".").lower() if found else ""


class Visitor:
    """A request as rules see it. `country` and `seed` are those of a pretended visitor."""

    __slots__ = (
        "agent",
        "country",
        "languages",
        "network",
        "now_ns",
        "parameters",
        "query",
        "referrer",
        "seed",
    )

    def __init__(
        self,
        now_ns: int,
        network: bytes = b"",
        agent: bytes = b"",
        languages: bytes = b"",
        referrer: bytes = b"",
        query: bytes = b"",
    ) -> None:
        self.now_ns = now_ns
        self.network = network
        self.agent = agent[:MAX_AGENT_BYTES]
        self.languages = languages[:MAX_LANGUAGE_BYTES]
        self.referrer = referrer
        self.query = query
        self.country: str | None = None
        self.seed: bytes | None = None
        self.parameters: Mapping[str, list[str]] | None = None

    def get_parameters(self) -> Mapping[str, list[str]]:
        if self.parameters is None:
            self.parameters = parse_parameters(self.query)
        return self.parameters


class DailySalts:
    """The salts of shares: a new one each day, the same on every node. None is ever stored."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._day = -1
        self._salt = b""

    def get(self, day: int) -> bytes:
        if day != self._day:
            self._salt = self._secret.sign("share", b"%d" % day, size=32)
            self._day = day
        return self._salt


def is_bot_or_prefetch(rt: Runtime, scope: Scope) -> bool:
    """Return whether a request is by a bot, or made before anyone wants to see the result."""
    headers = dict(scope["headers"])
    agent = headers.get(b"user-agent", b"")[:MAX_AGENT_BYTES]
    is_bot = rt.singleton(VisitorFacts).agents[agent].device == BOT_DEVICE
    return is_bot or bool(parse_flags(headers) & PREFETCH)


class VisitorFacts:
    """Facts about visitors, cached by what requests say. One per process."""

    def __init__(self, rt: Runtime) -> None:
        self.agents = BoundedCache(classify_agent, MAX_CACHED_AGENTS)
        self.crawlers = BoundedCache(is_preview_crawler, MAX_CACHED_AGENTS)
        """Whether agents draw previews in chats."""
        self.languages = BoundedCache(list_accepted_languages, MAX_CACHED_FACTS)
        self.referrer_hosts = BoundedCache(parse_referrer_host, MAX_CACHED_FACTS)
        """Of referrers up to `MAX_CACHED_REFERRER_BYTES`."""
        self._countries = BoundedCache(self._locate, MAX_CACHED_FACTS)
        self._salts = DailySalts(rt.secret)
        self._rt = rt
        self._places: PlaceLookup | None = None

    async def load_places(self) -> None:
        """Make countries known, and notice a replaced file."""
        if self._places is None:
            settings, clock = self._rt.settings, self._rt.clock
            self._places = await asyncio.to_thread(PlaceLookup, settings.geoip_path, clock)
            self._countries.clear()
        if self._places.is_due and await asyncio.to_thread(self._places.refresh):
            self._countries.clear()

    async def refresh_places(self) -> None:
        """Notice replaced files for as long as this runs, once a rule needs countries."""
        while True:
            await asyncio.sleep(REFRESH_INTERVAL)
            if self._places is not None:
                await self.load_places()

    def find_country(self, visitor: Visitor) -> str:
        """Return the code of the visitor's country; `XX` if it is unknown."""
        return visitor.country or self._countries[visitor.network]

    def draw_number(self, visitor: Visitor, link_id: int) -> int:
        """Return the number of a visitor for a link: the same for a day, then another one."""
        seed = visitor.seed
        who = b"%b\0%b" % (visitor.network, visitor.agent) if seed is None else b"seed\0" + seed
        key = self._salts.get(visitor.now_ns // _DAY_NS)
        digest = blake2b(b"%d\0%b" % (link_id, who), key=key, digest_size=8).digest()
        return int.from_bytes(digest, "big") * NUMBERS >> 64

    def _locate(self, network: bytes) -> str:
        return UNKNOWN_COUNTRY if self._places is None else self._places[network].country_code
