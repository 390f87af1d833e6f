"""Links of the demo: those of a small team in a quarter."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from refract.cli.demo.timeline import DailyTraffic, Timeline
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.access import LinkCaller
from refract.links.enums import Visibility
from refract.links.schemas import LinkCreate, LinkPatch
from refract.names.service import Namespace
from refract.tags import service as tag_service

_POPULAR = 15


@dataclass(frozen=True)
class SampleLink:
    """A link to create, with its clicks per ordinary day."""

    name: str
    destination: str
    title: str
    tags: str = ""
    daily: float = 1.0
    by: int = 0
    more: tuple[str, ...] = ()
    given: tuple[tuple[str, Any], ...] = ()
    then: str = ""
    """What happens to it later: expire, disable, delete, or nothing."""
    growth: float = 2.0
    """Clicks per day at the end, in multiples of those at the beginning."""


SAMPLES = (
    SampleLink(
        "handbook",
        "https://handbook.example.com/start",
        "Team handbook",
        "people",
        14,
        more=("welcome",),
    ),
    SampleLink(
        "roadmap",
        "https://docs.example.com/platform/2026/roadmap?view=timeline",
        "Roadmap 2026",
        "planning,platform",
        22,
    ),
    SampleLink(
        "standup", "https://meet.example.com/platform-standup", "Daily stand-up", "meetings", 11
    ),
    SampleLink(
        "jira",
        "https://issues.example.com/browse/{1=PROJ}",
        "Issue tracker",
        "platform",
        17,
        more=("issues", "bugs"),
    ),
    SampleLink(
        "gh", "https://github.com/example/{repo=refract}/{*}", "Our repositories", "platform", 12
    ),
    SampleLink(
        "guide",
        "https://docs.example.com/{*}",
        "Documentation",
        "platform",
        19,
        given=(("forward_query", True),),
    ),
    SampleLink(
        "oncall", "https://oncall.example.com/schedule/platform", "Who is on call", "operations", 6
    ),
    SampleLink(
        "status-page",
        "https://status.example.com/",
        "Status page",
        "operations",
        9,
        given=(("visibility", "public"),),
    ),
    SampleLink(
        "grafana", "https://metrics.example.com/d/{board=overview}", "Dashboards", "operations", 8
    ),
    SampleLink("runbook", "https://wiki.example.com/runbooks/{1}", "Runbooks", "operations", 4),
    SampleLink(
        "vacation", "https://people.example.com/leave/request", "Ask for leave", "people", 3
    ),
    SampleLink(
        "expenses",
        "https://people.example.com/expenses/new",
        "Expenses",
        "people",
        4,
        given=(("visibility", "secure"),),
    ),
    SampleLink(
        "offsite",
        "https://maps.example.com/place/lake-house?z=14",
        "Offsite at the lake house",
        "meetings",
        5,
        1,
    ),
    SampleLink(
        "design",
        "https://design.example.com/files/system-v3",
        "Design system",
        "design",
        7,
        1,
        more=("figma",),
    ),
    SampleLink(
        "brand",
        "https://design.example.com/brand/logo-pack.zip",
        "Logo pack",
        "design,marketing",
        2,
        1,
    ),
    SampleLink(
        "launch",
        "https://www.example.com/blog/introducing-lists",
        "Launch: lists",
        "marketing,launch",
        61,
        1,
        ("lists-launch",),
        growth=0.15,
    ),
    SampleLink(
        "newsletter",
        "https://news.example.com/issue/42?utm_source=short",
        "Newsletter 42",
        "marketing",
        33,
        1,
        growth=0.15,
    ),
    SampleLink(
        "talk",
        "https://speakers.example.com/2026/one-home",
        "Conference talk, slides",
        "marketing,launch",
        18,
        1,
        growth=0.15,
    ),
    SampleLink(
        "poster",
        "https://www.example.com/spring?utm_source=poster",
        "Spring poster",
        "marketing",
        9,
        1,
        then="expire",
    ),
    SampleLink(
        "webinar",
        "https://events.example.com/webinar/spring",
        "Spring webinar",
        "marketing",
        4,
        1,
        then="disable",
    ),
    SampleLink(
        "pricing",
        "https://www.example.com/pricing",
        "Pricing",
        "marketing",
        26,
        1,
        given=(("visibility", "public"),),
    ),
    SampleLink(
        "survey", "https://forms.example.com/f/annual-survey", "Annual survey", "people", 5, 2
    ),
    SampleLink(
        "interview", "https://people.example.com/hiring/kit", "Interview kit", "people,hiring", 3, 2
    ),
    SampleLink(
        "jobs-board",
        "https://www.example.com/jobs",
        "Open jobs",
        "hiring,marketing",
        12,
        2,
        given=(("visibility", "public"),),
    ),
    SampleLink(
        "budget",
        "https://sheets.example.com/d/2026-budget",
        "Budget 2026",
        "planning",
        2,
        given=(("visibility", "secure"),),
    ),
    SampleLink(
        "okr", "https://docs.example.com/okr/{quarter=q2}", "Objectives by quarter", "planning", 5
    ),
    SampleLink(
        "retro", "https://board.example.com/retro/current", "Retrospective board", "meetings", 3
    ),
    SampleLink(
        "lunch", "https://maps.example.com/place/noodle-bar", "Where we eat on Thursdays", "", 2, 2
    ),
    SampleLink("wifi", "https://wiki.example.com/office/wifi", "Guest network", "office", 6, 2),
    SampleLink(
        "printer",
        "https://wiki.example.com/office/printer",
        "The printer on the second floor",
        "office",
        1,
        2,
        then="delete",
    ),
    SampleLink("", "https://arxiv.org/abs/1706.03762", "Attention is all you need", "reading", 1),
    SampleLink(
        "", "https://www.sqlite.org/whentouse.html", "Appropriate uses for SQLite", "reading", 1
    ),
    SampleLink("", "https://www.w3.org/Provider/Style/URI", "Cool URIs don’t change", "reading", 2),
    SampleLink("", "https://en.wikipedia.org/wiki/Refraction", "", "", 0.4),
    SampleLink(
        "snow",
        "https://en.wikipedia.org/wiki/Snowflake_ID",
        "How our ids are made",
        "platform,reading",
        1,
    ),
    SampleLink(
        "security",
        "https://wiki.example.com/security/report",
        "Report something suspicious",
        "operations",
        2,
    ),
    SampleLink(
        "press",
        "https://www.example.com/press/kit-2026.zip",
        "Press kit",
        "marketing,launch",
        8,
        1,
        growth=0.15,
    ),
    SampleLink(
        "demo-day",
        "https://meet.example.com/demo-day",
        "Demo day, every other Friday",
        "meetings",
        4,
        2,
    ),
    SampleLink("api-docs", "https://docs.example.com/api/v1", "Public API", "platform", 10),
    SampleLink(
        "changelog",
        "https://www.example.com/changelog",
        "Changes",
        "marketing,platform",
        15,
        given=(("visibility", "public"),),
    ),
)
TAG_COLORS = {
    "planning": "#2F4BD6",
    "platform": "#11703F",
    "operations": "#B45309",
    "people": "#7C3AED",
    "meetings": "#0E7490",
    "design": "#DB2777",
    "marketing": "#E0612B",
    "launch": "#B3261E",
    "hiring": "#4D7C0F",
    "office": "#57534A",
    "reading": "#6B7280",
}


def plan_links(
    rt: Runtime, timeline: Timeline, space: Namespace, people: Sequence[User]
) -> dict[int, DailyTraffic]:
    """Plan when links are created and changed; return their traffic, complete when all ran."""
    traffic: dict[int, DailyTraffic] = {}
    for number, sample in enumerate(SAMPLES):
        event = partial(_create_link, rt, timeline, space, people, sample, traffic)
        timeline.add(number / (len(SAMPLES) + 1), event)
    timeline.add_recent(timedelta(hours=2), partial(_set_tag_colors, rt))
    return traffic


async def _create_link(
    rt: Runtime,
    timeline: Timeline,
    space: Namespace,
    people: Sequence[User],
    sample: SampleLink,
    traffic: dict[int, DailyTraffic],
) -> None:
    begin, end = rt.clock.now(), timeline.end
    given: dict[str, Any] = {"visibility": Visibility.UNLISTED, **dict(sample.given)}
    if sample.then:
        end = begin + timeline.length / 10
    if sample.then == "expire":
        given["expires_at"] = end
    new = LinkCreate(
        destination=sample.destination,
        names=[name for name in (sample.name, *sample.more) if name],
        title=sample.title or None,
        tags=[tag for tag in sample.tags.split(",") if tag],
        **given,
    )
    checked = await service.check_link(rt, new)
    owner = people[sample.by]
    caller = LinkCaller(owner.id)
    async with rt.db.write() as session:
        created = await service.create_link(session, rt, owner, checked, charged=False)
        link_id = created.card.link.id
        if sample.by:
            await service.add_owner(session, caller, link_id, people[0].email, rt.clock.now())
    traffic[link_id] = DailyTraffic(begin, min(end, timeline.end), sample.daily, sample.growth)
    if sample.daily > _POPULAR:
        timeline.add_at(begin + timedelta(hours=1), partial(_add_note, rt, space, caller, link_id))
    if sample.then in ("disable", "delete"):
        timeline.add_at(end, partial(_retire, rt, caller, link_id, sample.then))


async def _add_note(rt: Runtime, space: Namespace, caller: LinkCaller, link_id: int) -> None:
    patch = LinkPatch(notes="Shared in the team channel.")
    async with rt.db.write() as session:
        await service.edit_link(session, space, caller, link_id, patch)


async def _retire(rt: Runtime, caller: LinkCaller, link_id: int, how: str) -> None:
    change = service.disable_link if how == "disable" else service.delete_link
    async with rt.db.write() as session:
        await change(session, caller, link_id, rt.clock.now())


async def _set_tag_colors(rt: Runtime) -> None:
    async with rt.db.write() as session:
        for tag in (await tag_service.find_live_shared_tags(session, TAG_COLORS)).values():
            await tag_service.change_shared_tag(
                session, tag, by=None, at=rt.clock.now(), color=TAG_COLORS.get(tag.key)
            )
