"""Classification of user agents: browser and system of a person, or a bot."""

import re
import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from refract.clicks.ingest.bounded_cache import BoundedCache
from refract.clicks.rollups.breakdowns import build_breakdown_key
from refract.core.memory import release_free_memory

MAX_CACHED_AGENTS: Final = 8192
PATTERNS_IDLE_SECONDS = 60.0
BOT_DEVICE: Final = "bot"

_BOT_PATTERNS: Final = (
    # Crawlers.
    r"(?<!cu)bot\b", r"(?<!cu)bot[/_-]", r"crawl", r"spider", r"slurp", r"scrap[ey]", r"archiver",
    r"fetcher", r"indexer", r"nutch", r"heritrix", r"mediapartners", r"apis-google", r"googleother",
    r"google-(?:inspection|read-aloud|safety|site|extended)", r"bingpreview",
    r"yandex(?:direct|metrika|images)", r"gptbot", r"chatgpt", r"anthropic", r"claude-",
    r"perplexity", r"ccbot", r"cohere-", r"diffbot", r"ia_archiver", r"screaming frog",
    # Link previews.
    r"preview", r"facebookexternal", r"facebookcatalog", r"meta-external", r"whatsapp/",
    r"telegram", r"embedly", r"iframely", r"quora link", r"pinterest/\d", r"vkshare", r"skypeuri",
    r"mastodon/", r"pleroma", r"misskey", r"akkoma", r"lemmy/", r"nuzzel", r"outbrain",
    r"flipboard", r"tumblr/", r"bitlybot", r"snap url", r"google-pagerenderer", r"ms-office",
    r"microsoft office", r"slack-imgproxy", r"viber/url", r"line-poker", r"kakaotalk-scrap",
    r"zalo/", r"cardyb/", r"web/snippet",
    # Monitoring and measurement.
    r"monitor", r"uptime", r"pingdom", r"statuscake", r"site24x7", r"newrelic", r"datadog",
    r"zabbix", r"nagios", r"prometheus", r"blackbox", r"lighthouse", r"pagespeed", r"gtmetrix",
    r"ptst/", r"validator", r"checker", r"feed(?:ly|burner|fetcher|bin|er|validator)?/", r"\brss",
    r"kube-probe", r"elb-healthchecker", r"googlehc", r"healthcheck",
    # Programs and libraries.
    r"headless", r"phantomjs", r"puppeteer", r"playwright", r"selenium", r"^curl", r"^wget",
    r"libcurl", r"httpie", r"python[-/ ]", r"aiohttp", r"httpx", r"urllib", r"requests/", r"okhttp",
    r"go-http", r"java/", r"apache-http", r"jakarta", r"libwww", r"lwp::", r"^ruby", r"faraday",
    r"^php", r"guzzle", r"symfony", r"axios", r"node-fetch", r"undici", r"^node", r"got \(",
    r"superagent", r"deno/", r"^bun/", r"dart[/:]", r"reqwest", r"hyper/", r"postman", r"insomnia",
    r"powershell", r"winhttp", r"\.net ", r"restsharp", r"cfnetwork(?!.*(?:safari|mozilla))",
    r"^dalvik", r"\bperl\b", r"^lua", r"^rust", r"^erlang", r"^hackney", r"^elixir", r"wordpress/",
    r"drupal", r"zgrab", r"masscan", r"nmap", r"nikto", r"sqlmap", r"censys", r"expanse", r"nuclei",
    r"wpscan", r"dirbuster", r"ltx71", r"netcraft", r"internet-measurement", r"webmon",
)  # fmt: skip
# In lower case and most of them as words: alternatives that ignore case take twenty times as long.
_is_word = re.compile(r"[a-z0-9/ _-]+").fullmatch
_BOT_WORDS: Final = tuple(pattern for pattern in _BOT_PATTERNS if _is_word(pattern))
_bot_searches: Final = tuple(
    re.compile(pattern).search for pattern in _BOT_PATTERNS if not _is_word(pattern)
)
_TABLET_PATTERN: Final = re.compile(
    r"ipad|tablet|kindle|silk/|playbook|nexus (?:7|9|10)|(?:android(?!.*mobile))"
)
_MOBILE_PATTERN: Final = re.compile(r"mobi|iphone|ipod|android|windows phone|blackberry|opera mini")


class UserAgent(NamedTuple):
    """The facts of a user agent that are stored."""

    text: str | None
    key: bytes  # the same text, as part of the visitor hash
    device: str
    browser: str | None = None
    browser_version: str | None = None
    system: str | None = None
    system_version: str | None = None
    breakdown_keys: tuple[str, ...] = ()  # keys under which breakdowns count it


_SYSTEM_NAMES = {"Mac OS X": "macOS"}


class UserAgentParser(BoundedCache[UserAgent]):
    """A cache of parsed user agents, by the bytes that were sent.

    A missing or unknown user agent counts as a person at a desktop. The patterns take 10 MB, and a
    tenth of a second to load, so they are dropped while all agents are known.
    """

    def __init__(self) -> None:
        super().__init__(self._parse_agent, MAX_CACHED_AGENTS)
        self._parsed_at = time.monotonic()
        _load_parser()

    @property
    def has_patterns(self) -> bool:
        return _load_parser.cache_info().currsize > 0

    @property
    def is_idle(self) -> bool:
        """Return whether the patterns are loaded, and no agent was new for a while."""
        return self.has_patterns and time.monotonic() - self._parsed_at > PATTERNS_IDLE_SECONDS

    def load_patterns(self, agents: Iterable[bytes]) -> None:
        """Load the patterns if one of these agents is new. Slow: call it in a thread."""
        if any(agent and agent not in self for agent in agents):
            self._parsed_at = time.monotonic()
            _load_parser()

    def drop_patterns(self) -> None:
        """Free the memory of the patterns until an agent is new."""
        _load_parser.cache_clear()
        release_free_memory()

    def _parse_agent(self, raw: bytes) -> UserAgent:
        text = sanitize_text(raw, 512)
        if not text:
            return UserAgent(
                None, b"\0", "desktop", breakdown_keys=(build_breakdown_key("devices", "desktop"),)
            )
        self._parsed_at = time.monotonic()
        parse, domains = _load_parser()
        found = parse(text, domains)
        device, (browser, browser_version), (system, system_version) = (
            detect_device(text),
            _parse_family(found.user_agent),
            _parse_family(found.os),
        )
        dimensions = (("devices", device), ("browsers", browser), ("systems", system))
        parts = tuple(
            build_breakdown_key(dimension, value) for dimension, value in dimensions if value
        )
        return UserAgent(
            text,
            b"\0" + text.encode(),
            device,
            browser,
            browser_version,
            system,
            system_version,
            parts,
        )


@cache
def _load_parser() -> tuple[Any, Any]:
    """Compile the Rust engine's hundreds of patterns, until they are dropped.

    Without those for devices: names of phones would double the memory and are not used.
    """
    from ua_parser import (  # noqa: PLC0415 - heavy, and not needed to redirect
        Domain,
        Parser,
        load_lazy_builtins,
    )
    from ua_parser.regex import Resolver  # noqa: PLC0415 - likewise

    browsers, systems, _ = load_lazy_builtins()
    return Parser(Resolver((browsers, systems, []))), Domain.USER_AGENT | Domain.OS


def describe_browsers(agents: Sequence[str]) -> list[tuple[str | None, str | None]]:
    """Return browser and system of each user agent, as people call them. Slow when first called."""
    parse, domains = _load_parser()
    found = [parse(text[:512], domains) for text in agents]
    families = [(_parse_family(agent.user_agent)[0], _parse_family(agent.os)[0]) for agent in found]
    return [(browser, _SYSTEM_NAMES.get(system or "", system)) for browser, system in families]


def detect_device(text: str) -> str:
    """Return the kind of device of a user agent, or that it is a bot."""
    lower = text.lower()
    if any(word in lower for word in _BOT_WORDS) or any(search(lower) for search in _bot_searches):
        return BOT_DEVICE
    if _TABLET_PATTERN.search(lower):
        return "tablet"
    return "mobile" if _MOBILE_PATTERN.search(lower) else "desktop"


def _parse_family(found: Any) -> tuple[str | None, str | None]:
    """Return family and version, such as `Firefox` and `140.0`."""
    if found is None or not found.family or found.family == "Other":
        return None, None
    numbers = [part for part in (found.major, found.minor, found.patch) if part]
    return found.family[:100], ".".join(numbers)[:30] or None


def sanitize_text(raw: bytes, max_length: int) -> str:
    """Decode untrusted bytes, cut to the column's length.

    Zero characters are removed, since PostgreSQL rejects them.
    """
    return raw.decode("utf-8", "replace").replace("\x00", "")[:max_length]
