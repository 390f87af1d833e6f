"""Believable traffic of any size over any time, for the demo, benches and tests.

The same seed gives the same clicks.

People live in time zones, sleep at night, work on weekdays and come back; links differ in
popularity and are shared in bursts; bots do not sleep. Visits are written as the frames that the
redirect engine writes.
"""

import random
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from refract.cli.demo.world import (
    AGENTS,
    BOTS,
    BY_HOUR,
    BY_WEEKDAY,
    CAMPAIGNS,
    COUNTRIES,
    PREVIEWS,
    REFERRERS,
)
from refract.clicks.spool.format import LINK_CLICK, PREFETCH, PRIVATE, encode_frame
from refract.clicks.spool.languages import encode_language
from refract.clicks.spool.writer import SpoolWriter
from refract.core.clock import to_nanoseconds
from refract.core.ip_addresses import get_network

HOUR: Final = timedelta(hours=1)
_HOUR_NS: Final = 3_600_000_000_000
_TURN: Final = 256
_PERSON, _BOT, _PREVIEW = range(3)
Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class TrafficPlan:
    """A number of clicks on targets between two times, the end excluded."""

    targets: Sequence[int]
    start: datetime
    end: datetime
    clicks: int
    seed: int = 0
    growth: float = 2.0
    """Traffic at the end, in multiples of that at the beginning."""
    bots: float = 0.10
    previews: float = 0.03
    private: float = 0.04
    """The share of people who ask not to be tracked."""
    loyalty: float = 3.0
    """Clicks per visitor, over the whole time."""
    kind: int = LINK_CLICK


class Visit(NamedTuple):
    """One request for a short link, as the redirect engine sees it."""

    kind: int
    target: int
    time_ns: int
    flags: int
    network: bytes
    agent: bytes
    referrer: bytes
    query: bytes
    language: bytes = b""

    @property
    def frame(self) -> bytes:
        return encode_frame(
            self.kind,
            self.target,
            self.time_ns,
            self.flags,
            self.network,
            self.agent,
            self.referrer,
            self.query,
            language=encode_language(self.language),
        )


def make_visits(plan: TrafficPlan) -> Iterator[Visit]:
    """Yield every visit in order of time.

    Memory holds one hour of them, however long the whole is.
    """
    if not plan.targets or plan.clicks < 1 or plan.start >= plan.end:
        return
    chance = random.Random(plan.seed)  # noqa: S311 - nothing here is secret
    maker = _Maker(plan, chance)
    for (begin, length), count in zip(_hours(plan), _shares(plan), strict=True):
        yield from maker.hour(begin, length, count)


def write_spool(
    root: Path, visits: Iterable[Visit], *, node: str = "generated", segment_bytes: int = 8 << 20
) -> int:
    """Write visits into a spool below `root`, for the ingester; return how many were kept."""
    spool = SpoolWriter(root, node=node, segment_bytes=segment_bytes)
    every = iter(visits)
    try:
        while some := list(islice(every, _TURN)):
            spool.append([visit.frame for visit in some])
    finally:
        spool.close()
    return spool.written


class _Maker:
    """Draws visits from tables that are prepared once."""

    def __init__(self, plan: TrafficPlan, chance: random.Random) -> None:
        self._plan = plan
        self._chance = chance
        self._targets = list(plan.targets)
        chance.shuffle(self._targets)  # the most popular is not always the oldest
        self._popular = list(
            accumulate(1 / (rank + 1) ** 0.9 for rank in range(len(self._targets)))
        )
        people = plan.clicks * (1 - plan.bots - plan.previews) / plan.loyalty
        everybody = sum(country.weight for country in COUNTRIES)
        self._people = [1 + int(people * country.weight / everybody) for country in COUNTRIES]
        self._kinds = (_BOT, _PREVIEW, _PERSON)
        self._of_kinds = list(
            accumulate((plan.bots, plan.previews, max(0.0, 1 - plan.bots - plan.previews)))
        )

    def hour(self, begin: int, length: int, count: int) -> Iterator[Visit]:
        """Yield `count` visits from `begin` on, within `length` nanoseconds."""
        if not count:
            return
        chance = self._chance
        # Whole microseconds, since that is what databases keep.
        times = sorted(begin + chance.randrange(length // 1000 or 1) * 1000 for _ in range(count))
        targets = self._targets_of_hour(count)
        kinds = chance.choices(self._kinds, cum_weights=self._of_kinds, k=count)
        awake = _awake(begin // _HOUR_NS % 168)
        for at, target, kind in zip(times, targets, kinds, strict=True):
            if kind == _PERSON:
                yield self._visit_person(target, at, awake)
            else:
                yield self._visit_machine(target, at, kind)

    def _visit_person(self, target: int, at: int, awake: Sequence[float]) -> Visit:
        chance, plan = self._chance, self._plan
        country = _pick(_COUNTRIES, awake, chance.random())
        network, agent, language = _person(
            plan.seed, country, chance.randrange(self._people[country])
        )
        flags = PRIVATE if chance.random() < plan.private else 0
        referrer = _pick(_REFERRERS, _BY_REFERRER, chance.random())
        campaign = _pick(_CAMPAIGNS, _BY_CAMPAIGN, chance.random())
        return Visit(plan.kind, target, at, flags, network, agent, referrer, campaign, language)

    def _visit_machine(self, target: int, at: int, kind: int) -> Visit:
        chance = self._chance
        agents, weights = (_BOTS, _BY_BOT) if kind == _BOT else (_PREVIEWS, _BY_PREVIEW)
        agent = _pick(agents, weights, chance.random())
        flags = PREFETCH if kind == _PREVIEW and chance.random() < 0.5 else 0
        network = _NETWORKS[0][chance.randrange(len(_NETWORKS[0]))]
        return Visit(self._plan.kind, target, at, flags, network, agent, b"", b"")

    def _targets_of_hour(self, count: int) -> list[int]:
        """Draw targets by popularity; now and then one gets a third of all clicks for an hour."""
        chance = self._chance
        found = chance.choices(self._targets, cum_weights=self._popular, k=count)
        if chance.random() < 0.02:
            shared = chance.choice(self._targets)
            found = [shared if chance.random() < 0.33 else target for target in found]
        return found


def _hours(plan: TrafficPlan) -> Iterator[tuple[int, int]]:
    """Yield start and length of every hour in nanoseconds; the outer two may be shorter."""
    at, end = to_nanoseconds(plan.start), to_nanoseconds(plan.end)
    while at < end:
        following = min(end, (at // _HOUR_NS + 1) * _HOUR_NS)
        yield at, following - at
        at = following


def _shares(plan: TrafficPlan) -> Iterator[int]:
    """Yield how many clicks each hour gets.

    Rounding carries over, so that they add up to the plan.
    """
    begin, whole = to_nanoseconds(plan.start), to_nanoseconds(plan.end) - to_nanoseconds(plan.start)
    weights = [
        length * sum(_busy(at // _HOUR_NS % 168)) * plan.growth ** ((at - begin) / whole)
        for at, length in _hours(plan)
    ]
    total, given, sofar = sum(weights), 0, 0.0
    for number, weight in enumerate(weights):
        sofar += weight
        upto = plan.clicks if number == len(weights) - 1 else int(plan.clicks * (sofar / total))
        yield upto - given
        given = upto


@lru_cache(maxsize=168)
def _busy(hour_of_week: int) -> tuple[float, ...]:
    """Return how busy each country is. Hour 0 of the Unix week is Thursday, midnight UTC."""
    found = []
    for country in COUNTRIES:
        local = hour_of_week + country.hours
        weekday = (int(local // 24) + 3) % 7
        found.append(country.weight * BY_HOUR[int(local % 24)] * BY_WEEKDAY[weekday] / 100)
    return tuple(found)


@lru_cache(maxsize=168)
def _awake(hour_of_week: int) -> list[float]:
    return list(accumulate(_busy(hour_of_week)))


@lru_cache(maxsize=100_000)
def _person(seed: int, country: int, number: int) -> tuple[bytes, bytes, bytes]:
    """Return network, agent and language of one of a country's people, the same every time."""
    chance = random.Random((seed << 40) ^ (country << 32) ^ number)  # noqa: S311
    version = 118 + number % 14
    pattern = _pick(_PATTERNS, _BY_PATTERN, chance.random())
    small = "17." in pattern or "17_" in pattern or "SamsungBrowser" in pattern
    agent = pattern.replace("{}", str(number % 7 if small else version))
    networks = _NETWORKS[country]
    network = networks[chance.randrange(len(networks))]
    language = COUNTRIES[country].languages.split()[bisect((0.8, 0.95), chance.random())]
    return network, agent.encode(), language.encode()


def _networks(blocks: Sequence[str]) -> list[bytes]:
    found: list[bytes] = []
    for block in blocks:
        if ":" in block:
            found += [get_network(f"{block}:{number:x}::1") for number in range(1, 33)]
        else:
            head, _, last = block.rpartition(".")
            found += [get_network(f"{head}.{int(last) + number}.1") for number in range(16)]
    return found


def _pick(things: Sequence[Thing], weights: Sequence[float], point: float) -> Thing:
    """Return the thing at a point between 0 and 1, by cumulative weights."""
    return things[bisect(weights, point * weights[-1], 0, len(things) - 1)]


def _table(weighted: Sequence[tuple[int, Thing]]) -> tuple[list[Thing], list[float]]:
    return [thing for _, thing in weighted], [
        float(sofar) for sofar in accumulate(weight for weight, _ in weighted)
    ]


_COUNTRIES: Final = range(len(COUNTRIES))
_NETWORKS: Final = [_networks(country.blocks) for country in COUNTRIES]
_PATTERNS, _BY_PATTERN = _table(AGENTS)
_BOTS, _BY_BOT = _table([(weight, agent.encode()) for weight, agent in BOTS])
_PREVIEWS, _BY_PREVIEW = _table([(weight, agent.encode()) for weight, agent in PREVIEWS])
_REFERRERS, _BY_REFERRER = _table([(weight, referrer.encode()) for weight, referrer in REFERRERS])
_CAMPAIGNS, _BY_CAMPAIGN = _table(list(CAMPAIGNS))
