"""What rules cost a cached link in each lane, and whether shares reach the visitors they promise.

    python -m bench rules [--visitors N]

A plain link and one with five rules, none of which matches, are answered in the same run, without
sockets. The bar is 2.5 times the CPU of the plain one. Then simulated visitors are decided by
shares: each must be within 0.2 points, the same for a visitor all day, and drawn anew the next day.
Exit status 1 if one of these fails.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from bench._common import AGENT, table
from bench._runtime import own_runtime
from bench.lane_parts import HOST, Nowhere, build_request, measure_hits
from bench.redirect import HEADERS
from refract.clicks.spool.format import encode_origin
from refract.clicks.spool.writer import SpoolWriter
from refract.core.clock import to_nanoseconds
from refract.core.runtime import Runtime
from refract.redirect import responses
from refract.redirect.cache import CachedRedirect, RedirectCache
from refract.redirect.protocol import RedirectConnections
from refract.redirect.resolver import RedirectTarget, TargetRule
from refract.redirect.rules import CachedOutcome, CachedRules, CompiledRule, compile_rules
from refract.redirect.visitors import Visitor, VisitorFacts

MAX_RATIO = 2.5
MAX_SHARE_ERROR = 0.002
DAY_NS = 86_400 * 10**9
HOUR_NS = 3600 * 10**9
MIDNIGHT = datetime(2027, 3, 1, tzinfo=UTC)
CONDITIONS: Sequence[Mapping[str, Any]] = (
    {"systems": ["ios"], "devices": ["mobile"]},
    {"languages": ["ja"], "countries": ["JP"]},
    {"query": [{"name": "ref", "value": "mail"}]},
    {"referrers": ["shop.example"]},
    {"browsers": ["opera"], "share": 50},
)
"""None of them matches the requests of this bench."""
SHARES = (20, 30, 50)


def compile_conditions(
    conditions: Sequence[Mapping[str, Any]], facts: VisitorFacts
) -> list[CompiledRule]:
    rules = tuple(TargetRule(number, None, given) for number, given in enumerate(conditions, 1))
    return compile_rules(RedirectTarget("link", 77, "s77", rules=rules), facts)


def measure_lanes(facts: VisitorFacts) -> list[str]:
    """Print what a hit costs with and without rules; return what is too slow."""
    head = responses.build_head(302, b"https://example.com/article/77")
    compiled = compile_conditions(CONDITIONS, facts)
    outcomes = [
        (rule.checks.values(), CachedOutcome(head, encode_origin("", number), number))
        for number, rule in enumerate(compiled, 1)
    ]
    rules = CachedRules(outcomes, CachedOutcome(head, encode_origin("", None)), facts)
    rows, slow = [], []
    with tempfile.TemporaryDirectory() as directory:
        spool = SpoolWriter(Path(directory), node="bench", segment_bytes=1 << 20)
        cache = RedirectCache(100)
        connections = RedirectConnections(cache, spool, hosts={HOST: b""})
        # So that nothing is scheduled while we measure.
        connections.turn.answers.append((cast("Any", Nowhere()), b""))
        for lane in ("compiled", "python"):
            for headers in HEADERS:
                costs = []
                for chosen in (None, rules):
                    entry = CachedRedirect(10**17, 1, head, rules=chosen)
                    cache.fill(b"/s77", entry, cache.now())
                    costs.append(measure_hits(connections, lane, build_request(headers)))
                ratio = costs[1] / costs[0]
                rows.append([f"{lane} lane, {headers}", *(f"{cost:.2f}" for cost in costs)])
                rows[-1].append(f"{ratio:.2f}")
                if ratio > MAX_RATIO:
                    slow.append(f"{lane} lane, {headers}: {ratio:.2f} x, at most {MAX_RATIO}")
        spool.close()
    table(["µs CPU of a hit", "plain", f"{len(CONDITIONS)} rules", "ratio"], rows)
    return slow


def measure_shares(facts: VisitorFacts, visitors: int) -> list[str]:
    """Print the shares that simulated visitors get; return what is wrong with them."""
    compiled = compile_conditions([{"share": share} for share in SHARES], facts)
    agent, begin = AGENT.encode(), to_nanoseconds(MIDNIGHT)

    def decide(visitor: int, now_ns: int) -> int:
        found = Visitor(now_ns, b"\xc0" + visitor.to_bytes(4, "big"), agent)
        return next((number for number, rule in enumerate(compiled, 1) if rule.matches(found)), 0)

    counts: Counter[int] = Counter()
    unsteady = moved = 0
    for visitor in range(visitors):
        today = decide(visitor, begin)
        counts[today] += 1
        later = begin + (visitor % 24) * HOUR_NS, begin + DAY_NS - 1
        unsteady += any(decide(visitor, moment) != today for moment in later)
        moved += decide(visitor, begin + DAY_NS) != today
    wrong = []
    rows = []
    for number, share in enumerate(SHARES, 1):
        found = counts[number] / visitors
        rows.append([f"rule {number}", f"{share}%", f"{found:.3%}"])
        if abs(found - share / 100) > MAX_SHARE_ERROR:
            wrong.append(f"rule {number} got {found:.3%} of the visitors instead of {share}%")
    expected = 1 - sum((share / 100) ** 2 for share in SHARES)
    rows.append(["another rule the next day", f"{expected:.0%}", f"{moved / visitors:.3%}"])
    rows.append(["another rule the same day", "0%", f"{unsteady / visitors:.3%}"])
    table([f"{visitors:,} visitors", "expected", "found"], rows)
    if unsteady:
        wrong.append(f"{unsteady} visitors changed the rule within a day")
    if abs(moved / visitors - expected) > MAX_SHARE_ERROR:
        wrong.append(f"{moved / visitors:.3%} changed the rule the next day")
    return wrong


async def measure(visitors: int) -> list[str]:
    async with own_runtime("sqlite", "rules", MIDNIGHT) as rt:
        return await measure_with(rt, visitors)


async def measure_with(rt: Runtime, visitors: int) -> list[str]:
    facts = VisitorFacts(rt)
    await facts.load_places()
    slow = measure_lanes(facts)
    print()
    return [*slow, *measure_shares(facts, visitors)]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench rules")
    parser.add_argument("--visitors", type=int, default=1_000_000)
    failed = asyncio.run(measure(parser.parse_args(arguments).visitors))
    for line in failed:
        print(line)
    return 1 if failed else 0
