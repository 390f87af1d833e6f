"""Lists of the demo: two published ones and a draft."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from refract.cli.demo.timeline import DailyTraffic, Timeline
from refract.clicks.spool.format import ENTRY_CLICK, PAGE_VIEW
from refract.core.db.session import WriteSession
from refract.core.errors import RefractError
from refract.core.net.metadata import PageMetadata
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.lists import addresses, service
from refract.lists.access import ListCaller
from refract.lists.appearance import Cover, Layout, Palette
from refract.lists.draft_owners import ListClient
from refract.lists.models import LinkList, ListEntry
from refract.lists.schemas import ListCreate, SectionCreate
from refract.lists.service import CheckedAddress
from refract.names.service import Namespace


@dataclass(frozen=True)
class SampleList:
    """A list, with the titles and descriptions of its pages."""

    title: str
    about: str
    slug: str
    palette: Palette
    entries: tuple[tuple[str, str, str], ...]
    layout: Layout = "list"
    cover: Cover = "none"
    sections: tuple[tuple[str, int], ...] = ()
    """Headings, and the positions of the entries below them."""
    daily_views: float = 0
    share: float = 0.0
    """When it is created, as a share of the whole time."""


SAMPLES = (
    SampleList(
        "Reading for new people",
        "Start at the top. An hour a day, and by Friday you know how we work.",
        "reading",
        "forest",
        (
            (
                "https://handbook.example.com/start",
                "Team handbook",
                "How we decide, write and meet.",
            ),
            (
                "https://docs.example.com/platform/2026/roadmap",
                "Roadmap 2026",
                "What we do this year, and what we do not.",
            ),
            (
                "https://www.w3.org/Provider/Style/URI",
                "Cool URIs don’t change",
                "Tim Berners-Lee, 1998. Still the best page about links.",
            ),
            (
                "https://www.sqlite.org/whentouse.html",
                "Appropriate uses for SQLite",
                "Why one file is often enough.",
            ),
            (
                "https://www.postgresql.org/docs/current/explicit-locking.html",
                "Explicit locking",
                "Read before you touch the queue.",
            ),
        ),
        cover="hills",
        sections=(("Your first day", 1), ("When you have an hour", 3)),
        daily_views=24,
        share=0.04,
    ),
    SampleList(
        "Talks worth an evening",
        "Collected after the last three conferences.",
        "talks",
        "plum",
        (
            (
                "https://speakers.example.com/2026/one-home",
                "One home for every link",
                "Ours, with slides.",
            ),
            (
                "https://speakers.example.com/2026/queues",
                "A queue is a table",
                "Why we never ran a broker.",
            ),
            (
                "https://speakers.example.com/2026/keyboard",
                "Everything by keyboard",
                "Interfaces for people in a hurry.",
            ),
        ),
        layout="cards",
        cover="rays",
        daily_views=9,
        share=0.45,
    ),
    SampleList(
        "Offsite: places to stay",
        "",
        "",
        "ocean",
        (
            (
                "https://maps.example.com/place/lake-house",
                "Lake house",
                "Twelve beds, one long table.",
            ),
            ("https://maps.example.com/place/old-mill", "The old mill", ""),
        ),
        layout="compact",
        cover="waves",
        sections=(("By the water", 1),),
        share=0.92,
    ),
)


def plan_lists(
    rt: Runtime, timeline: Timeline, space: Namespace, owner: User
) -> dict[int, dict[int, DailyTraffic]]:
    """Plan when lists are created and published; page details are invented.

    Return the traffic of pages and entries by kind, complete when all ran.
    """
    traffic: dict[int, dict[int, DailyTraffic]] = {PAGE_VIEW: {}, ENTRY_CLICK: {}}
    for sample in SAMPLES:
        event = partial(_create_list, rt, timeline, space, owner, sample, traffic)
        timeline.add(sample.share, event)
    return traffic


async def _create_list(
    rt: Runtime,
    timeline: Timeline,
    space: Namespace,
    owner: User,
    sample: SampleList,
    traffic: dict[int, dict[int, DailyTraffic]],
) -> None:
    caller = ListCaller(owner.id)
    urls = [url for url, _, _ in sample.entries]
    checked = await addresses.check_addresses(rt, ListClient(None, None, network=""), urls)
    good = [url for url in checked if not isinstance(url, RefractError)]
    async with rt.db.write() as session:
        made, entries = await _fill_list(session, space, caller, sample, good)
        if sample.slug:
            await service.set_draft_slug(session, space, caller, made.id, sample.slug)
            await service.publish_list(session, space, caller, made.id)
    now, end, daily = rt.clock.now(), timeline.end, sample.daily_views
    traffic[PAGE_VIEW][made.id] = DailyTraffic(now, end, daily)
    for place, entry in enumerate(entries, 1):
        # The first links get most of the clicks.
        traffic[ENTRY_CLICK][entry.id] = DailyTraffic(now, end, daily * 0.6 / place)


async def _fill_list(
    session: WriteSession,
    space: Namespace,
    caller: ListCaller,
    sample: SampleList,
    urls: Sequence[CheckedAddress],
) -> tuple[LinkList, list[ListEntry]]:
    new = ListCreate(
        title=sample.title,
        description=sample.about or None,
        palette=sample.palette,
        layout=sample.layout,
        cover=sample.cover,
        shows_author=True,
    )
    made = await service.create_list(session, space, caller, new)
    entries = await service.add_entries(session, space, caller, made.id, urls)
    for entry, (_, title, about) in zip(entries, sample.entries, strict=True):
        found = PageMetadata(title=title, description=about or None)
        await service.fill_entry(session, entry.id, found, space.clock.now())
    for heading, position in sample.sections:
        section = SectionCreate(title=heading, position=position)
        await service.add_section(session, space, caller, made.id, section)
    return made, entries
