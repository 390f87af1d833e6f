"""Traffic of the demo: realistic, consistent, and the same for the same seed."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import iptocc

from refract.cli.demo.traffic import TrafficPlan, make_visits, write_spool
from refract.cli.demo.world import COUNTRIES
from refract.clicks.ingest.agents import UserAgentParser
from refract.clicks.spool.format import PREFETCH, PRIVATE, decode_clicks
from refract.clicks.spool.reader import SpoolPosition, count_pending, list_spools

START = datetime(2026, 3, 2, 7, 20, tzinfo=UTC)
MONTH = TrafficPlan([11, 22, 33, 44], START, START + timedelta(days=28), 20_000, seed=5)


@cache
def agents() -> UserAgentParser:
    return UserAgentParser()


def device_of(agent: bytes) -> str:
    return str(agents()[agent][2])


def test_as_many_as_wanted_in_order_within_the_time() -> None:
    times = [visit.time_ns for visit in make_visits(MONTH)]
    assert len(times) == MONTH.clicks
    assert times == sorted(times)
    assert times[0] >= START.timestamp() * 1e9
    assert times[-1] < MONTH.end.timestamp() * 1e9


def test_the_seed_decides() -> None:
    few = replace(MONTH, clicks=500)
    assert list(make_visits(few)) == list(make_visits(few))
    assert list(make_visits(few)) != list(make_visits(replace(few, seed=6)))


def test_days_and_weeks_have_a_rhythm_and_traffic_grows() -> None:
    found = [datetime.fromtimestamp(visit.time_ns / 1e9, UTC) for visit in make_visits(MONTH)]
    hours = Counter(at.hour for at in found)
    assert hours[15] > 1.5 * hours[4]
    weekdays = Counter(at.weekday() for at in found)
    assert weekdays[2] > 1.5 * weekdays[6]
    halves = Counter(at < START + timedelta(days=14) for at in found)
    assert halves[False] > 1.2 * halves[True]


def test_people_come_back_and_bots_previews_and_shy_people_are_among_them() -> None:
    found = list(make_visits(MONTH))
    people = [
        visit for visit in found if device_of(visit.agent) != "bot" and not visit.flags & PREFETCH
    ]
    assert 0.8 < len(people) / len(found) < 0.93
    visitors = Counter((visit.network, visit.agent) for visit in people)
    assert 1.5 < len(people) / len(visitors) < 15
    assert any(visit.flags & PREFETCH for visit in found)
    assert any(visit.flags & PRIVATE for visit in found)
    popular = Counter(visit.target for visit in found).most_common()
    assert popular[0][1] > 1.5 * popular[-1][1]
    assert {device_of(visit.agent) for visit in found} == {"desktop", "mobile", "tablet", "bot"}
    assert len({visit.referrer for visit in found}) > 10
    assert any(b"utm_campaign" in visit.query for visit in found)


def test_networks_lie_in_one_country_each() -> None:
    for country in COUNTRIES:
        codes = {
            iptocc.country_code(f"{block}::1" if ":" in block else f"{block}.1")
            for block in country.blocks
        }
        assert len(codes) == 1, country
        assert None not in codes


def test_nothing_wanted_gives_nothing() -> None:
    assert list(make_visits(replace(MONTH, clicks=0))) == []
    assert list(make_visits(replace(MONTH, targets=[]))) == []
    assert list(make_visits(replace(MONTH, end=START))) == []


def test_frames_are_what_the_engine_writes(tmp_path: Path) -> None:
    few = replace(MONTH, clicks=1_000)
    read = list(decode_clicks(b"".join(visit.frame for visit in make_visits(few)), 0))
    assert [one.time_ns for one in read] == [visit.time_ns for visit in make_visits(few)]
    assert not any(one.network or one.agent for one in read if one.flags & PRIVATE)
    assert write_spool(tmp_path, make_visits(few), segment_bytes=16_384) == 1_000
    (spool,) = list_spools(tmp_path)
    assert not spool.is_live
    assert len(spool.segments) > 3
    assert count_pending(spool, SpoolPosition()).clicks == 1_000
