"""Decisions by rules. Lane, slow path and `POST /resolve` use the same compiled conditions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from refract.core.clock import to_nanoseconds
from refract.links.preview_cards import PreviewCard
from refract.redirect.resolver import RedirectTarget, TargetRule
from refract.redirect.visitors import (
    MAX_CACHED_REFERRER_BYTES,
    NUMBERS,
    Visitor,
    VisitorFacts,
    parse_referrer_host,
)

_MINUTE_NS: Final = 60 * 10**9
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Fact(IntEnum):
    """What a check looks at, for the compiled lane. The first ones are those of `AgentTraits`."""

    DEVICES = 0
    SYSTEMS = 1
    BROWSERS = 2
    LANGUAGES = 3
    QUERY = 4
    REFERRERS = 5
    OTHER = 6


class Check(NamedTuple):
    """A test whether a visitor fulfils a condition.

    The compiled lane tests traits and languages itself, by `wanted`.
    """

    test: Callable[[Visitor], bool]
    fact: Fact = Fact.OTHER
    wanted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule with a check for each of its conditions."""

    rule: TargetRule
    checks: Mapping[str, Check]

    def matches(self, visitor: Visitor) -> bool:
        return all(check.test(visitor) for check in self.checks.values())


def compile_rules(found: RedirectTarget, facts: VisitorFacts) -> list[CompiledRule]:
    """Compile the rules of a link, also blocked ones: they keep their part of the shares."""
    compiled, taken = [], 0
    for rule in found.rules:
        checks = {
            name: _compile_condition(name, value, facts)
            for name, value in rule.conditions.items()
            if name != "share"
        }
        if share := rule.conditions.get("share"):
            checks["share"] = _compile_share(share, taken, found.id, facts)
            taken += share
        compiled.append(CompiledRule(rule, checks))
    return compiled


def choose_rule(found: RedirectTarget, facts: VisitorFacts, visitor: Visitor) -> TargetRule | None:
    """Return the rule that decides where a visitor is sent, or None for the link's destination."""
    return next(
        (
            compiled.rule
            for compiled in compile_rules(found, facts)
            if compiled.rule.is_active and compiled.matches(visitor)
        ),
        None,
    )


class CachedOutcome(NamedTuple):
    """A prepared response, and what its clicks say about their domain and rule."""

    head: bytes
    origin: bytes
    rule: int | None = None


class CachedRules:
    """The rules of a cached redirect, with a prepared response for each.

    With a preview card, crawlers of chats get none of them.
    """

    __slots__ = ("card", "compiled")

    def __init__(
        self,
        rules: Iterable[tuple[Iterable[Check], CachedOutcome]],
        default: CachedOutcome,
        facts: VisitorFacts,
        card: PreviewCard | None = None,
    ) -> None:
        self.card = card
        crawlers = [] if card is None else [((_compile_crawler(facts),), None)]
        self.compiled = (
            (*crawlers, *((tuple(checks), outcome) for checks, outcome in rules)),
            default,
            facts.agents,
            facts.languages,
        )
        """What the compiled lane decides by."""

    def apply(
        self,
        now_ns: int,
        network: bytes,
        agent: bytes,
        languages: bytes,
        referrer: bytes,
        query: bytes,
    ) -> tuple[bytes, bytes] | None:
        """Return the head of the response for a visitor, and the origin of their click.

        Return None if the visitor gets the preview card, which the slow path sends.
        """
        outcome = self.choose(Visitor(now_ns, network, agent, languages, referrer, query))
        return None if outcome is None else (outcome.head, outcome.origin)

    def choose(self, visitor: Visitor) -> CachedOutcome | None:
        """Return the response that a visitor gets, or None for the preview card."""
        rules, default, _, _ = self.compiled
        for checks, outcome in rules:
            for test, _, _ in checks:
                if not test(visitor):
                    break
            else:
                return outcome
        return default


def _compile_condition(  # noqa: PLR0911 - one per condition
    name: str, value: Any, facts: VisitorFacts
) -> Check:
    match name:
        case "devices" | "systems" | "browsers":
            return _compile_trait(Fact[name.upper()], value, facts)
        case "countries":
            wanted = frozenset(value)
            return Check(lambda visitor: facts.find_country(visitor) in wanted)
        case "languages":
            return _compile_languages(value, facts)
        case "query":
            return _compile_query(value)
        case "referrers":
            return _compile_referrers(value, facts)
        case "after":
            begin = to_nanoseconds(datetime.fromisoformat(value))
            return Check(lambda visitor: visitor.now_ns >= begin)
        case "before":
            end = to_nanoseconds(datetime.fromisoformat(value))
            return Check(lambda visitor: visitor.now_ns < end)
        case "hours":
            return Check(OpeningHours(value).includes)
    return Check(_match_nothing)  # written by a newer release


def _compile_crawler(facts: VisitorFacts) -> Check:
    crawlers = facts.crawlers
    return Check(lambda visitor: crawlers[visitor.agent])


def _match_nothing(_visitor: Visitor) -> bool:
    return False


def _compile_trait(trait: Fact, values: Sequence[str], facts: VisitorFacts) -> Check:
    wanted, agents, place = frozenset(values), facts.agents, int(trait)
    return Check(lambda visitor: agents[visitor.agent][place] in wanted, trait, wanted)


def _compile_languages(values: Sequence[str], facts: VisitorFacts) -> Check:
    wanted, languages = frozenset(values), facts.languages
    return Check(
        lambda visitor: not wanted.isdisjoint(languages[visitor.languages]), Fact.LANGUAGES, wanted
    )


def _compile_query(conditions: Sequence[Mapping[str, Any]]) -> Check:
    wanted = [(str(condition["name"]), condition.get("value")) for condition in conditions]

    def check(visitor: Visitor) -> bool:
        if not visitor.query:
            return False
        given = visitor.get_parameters()
        return all(
            name in given and (value is None or value in given[name]) for name, value in wanted
        )

    return Check(check, Fact.QUERY)


def _compile_referrers(hosts: Sequence[str], facts: VisitorFacts) -> Check:
    wanted, known = frozenset(hosts), facts.referrer_hosts
    below = tuple(f".{host}" for host in hosts)

    def check(visitor: Visitor) -> bool:
        referrer = visitor.referrer
        if not referrer:
            return False
        is_short = len(referrer) <= MAX_CACHED_REFERRER_BYTES
        host = known[referrer] if is_short else parse_referrer_host(referrer)
        return host in wanted or host.endswith(below)

    return Check(check, Fact.REFERRERS)


def _compile_share(share: int, taken: int, link_id: int, facts: VisitorFacts) -> Check:
    """Return the check of a share that begins where those of earlier rules end."""
    begin, size = taken * NUMBERS // 100 % NUMBERS, share * NUMBERS // 100
    return Check(lambda visitor: (facts.draw_number(visitor, link_id) - begin) % NUMBERS < size)


class OpeningHours:
    """Weekly hours in a time zone. They change at full minutes, so each minute is decided once."""

    def __init__(self, hours: Mapping[str, Any]) -> None:
        self._days = frozenset(_WEEKDAYS.index(day) for day in hours["days"])
        self._begin, self._end = _parse_minutes(hours["begin"]), _parse_minutes(hours["end"])
        self._zone = ZoneInfo(hours["zone"])
        self._minute = -1
        self._is_open = False

    def includes(self, visitor: Visitor) -> bool:
        minute = visitor.now_ns // _MINUTE_NS
        if minute != self._minute:
            self._is_open = self._is_open_at(minute)
            self._minute = minute
        return self._is_open

    def _is_open_at(self, minute: int) -> bool:
        moment = datetime.fromtimestamp(minute * 60, UTC).astimezone(self._zone)
        time, today = moment.hour * 60 + moment.minute, moment.weekday()
        if self._begin < self._end:
            return today in self._days and self._begin <= time < self._end
        yesterday = (moment - timedelta(days=1)).weekday()
        return (today in self._days and time >= self._begin) or (
            yesterday in self._days and time < self._end
        )


def _parse_minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)
