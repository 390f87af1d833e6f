"""Links of the demo: those of a small team in a quarter."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links import service
from refract.links.access import LinkCaller
from refract.links.models import Visibility
from refract.links.schemas import LinkCreate, LinkPatch
from refract.names.grammar import is_reserved
from refract.names.service import Namespace
from refract.tags import service as tag_service

DEFAULT_DAYS = 90


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
    """What happens to it at the end: expire, disable, delete, or nothing."""


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
        "docs",
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
    ),
    SampleLink(
        "newsletter",
        "https://news.example.com/issue/42?utm_source=short",
        "Newsletter 42",
        "marketing",
        33,
        1,
    ),
    SampleLink(
        "talk",
        "https://speakers.example.com/2026/one-home",
        "Conference talk, slides",
        "marketing,launch",
        18,
        1,
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
        "press", "https://www.example.com/press/kit-2026.zip", "Press kit", "marketing,launch", 8, 1
    ),
    SampleLink(
        "demo-day",
        "https://meet.example.com/demo-day",
        "Demo day, every other Friday",
        "meetings",
        4,
        2,
    ),
    SampleLink("api", "https://docs.example.com/api/v1", "Public API", "platform", 10),
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


LinkLifetime = tuple[datetime, datetime, float]


async def fill_links(
    rt: Runtime, clock: ManualClock, space: Namespace, people: Sequence[User], days: int
) -> dict[int, LinkLifetime]:
    """Create the links and change a few; return start, end and clicks per day of each."""
    now = clock.now() + timedelta(days=days)
    step = timedelta(days=days) / (len(SAMPLES) + 2)
    made: dict[int, LinkLifetime] = {}
    for sample in SAMPLES:
        if not is_reserved(sample.name):
            link_id, begin, end = await _create_link(rt, clock, space, people, sample, step)
            made[link_id] = (begin, min(end or now, now), sample.daily)
        clock.advance(step.total_seconds())
    await _set_tag_colors(rt)
    clock.advance((now - clock.now()).total_seconds())
    return made


async def _create_link(
    rt: Runtime,
    clock: ManualClock,
    space: Namespace,
    people: Sequence[User],
    sample: SampleLink,
    step: timedelta,
) -> tuple[int, datetime, datetime | None]:
    names = [name for name in (sample.name, *sample.more) if name]
    given: dict[str, Any] = {"visibility": Visibility.UNLISTED, **dict(sample.given)}
    if sample.then == "expire":
        given["expires_at"] = clock.now() + step * 4
    tags = [tag for tag in sample.tags.split(",") if tag]
    new = LinkCreate(
        destination=sample.destination, names=names, title=sample.title or None, tags=tags, **given
    )
    checked = await service.check_link(rt, new)
    owner = people[sample.by]
    async with rt.db.write() as session:
        created = await service.create_link(session, rt, owner, checked, charged=False)
        link_id, who = created.card.link.id, LinkCaller(owner.id)
        begin, end = clock.now(), given.get("expires_at")
        clock.advance(90)
        if sample.by:
            await service.add_owner(session, who, link_id, people[0].email, clock.now())
        if sample.daily > 15:
            clock.advance(3_600)
            await service.edit_link(
                session, space, who, link_id, LinkPatch(notes="Shared in the team channel.")
            )
        if sample.then in ("disable", "delete"):
            clock.advance(step.total_seconds() / 2)
            end = clock.now()
        if sample.then == "disable":
            await service.disable_link(session, who, link_id, clock.now())
        if sample.then == "delete":
            await service.delete_link(session, who, link_id, clock.now())
    return link_id, begin, end


async def _set_tag_colors(rt: Runtime) -> None:
    async with rt.db.write() as session:
        for tag in (await tag_service.find_live_shared_tags(session, TAG_COLORS)).values():
            await tag_service.change_shared_tag(
                session, tag, by=None, at=rt.clock.now(), color=TAG_COLORS.get(tag.key)
            )
