"""Lists of the demo: two published ones and a draft."""

from dataclasses import dataclass

from refract.core.clock import ManualClock
from refract.core.errors import RefractError
from refract.core.net.metadata import PageMetadata
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.lists import addresses, service
from refract.lists.access import ListCaller
from refract.lists.draft_owners import ListClient
from refract.lists.palettes import Palette
from refract.lists.schemas import ListCreate
from refract.names.service import Namespace


@dataclass(frozen=True)
class SampleList:
    """A list, with the titles and descriptions of its pages."""

    title: str
    about: str
    slug: str
    palette: Palette
    entries: tuple[tuple[str, str, str], ...]


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
    ),
)


async def fill_lists(rt: Runtime, clock: ManualClock, space: Namespace, owner: User) -> int:
    """Create and publish lists with the program's own services; page details are invented."""
    caller, client = ListCaller(owner.id), ListClient(None, None, network="")
    for sample in SAMPLES:
        found = await addresses.check_addresses(rt, client, [url for url, _, _ in sample.entries])
        good = [url for url in found if not isinstance(url, RefractError)]
        async with rt.db.write() as session:
            new = ListCreate(
                title=sample.title, description=sample.about or None, palette=sample.palette
            )
            made = await service.create_list(session, space, caller, new)
            entries = await service.add_entries(session, space, caller, made.id, good)
            for entry, (_, title, about) in zip(entries, sample.entries, strict=True):
                await service.fill_entry(
                    session,
                    entry.id,
                    PageMetadata(title=title, description=about or None),
                    clock.now(),
                )
            if sample.slug:
                await service.set_draft_slug(session, space, caller, made.id, sample.slug)
                await service.publish_list(session, space, caller, made.id)
        clock.advance(60)
    return len(SAMPLES)
