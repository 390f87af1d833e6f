"""Items of the demo: articles and notes, saved over the whole time; the latest wait for review."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib import resources

from refract.cli.demo.timeline import Timeline
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library import service
from refract.library.jobs import enrich_item
from refract.library.payloads import EnrichItem
from refract.library.schemas import ItemConfirmation, ItemCreate
from refract.tags import personal_tags

_REVIEW_DELAY = timedelta(minutes=25)


@dataclass(frozen=True)
class SampleItem:
    """An item: the URL of an article in `articles/`, or a note, and its reading states.

    With tags it is saved at a share of the whole time; without it was captured some hours ago and
    waits for review.
    """

    text: str
    tags: str = ""
    share: float = 0.0
    hours_ago: float = 0.0
    states: str = ""
    notes: str | None = None

    @property
    def article(self) -> str | None:
        """Return the file of the page, or None for a note."""
        return f"{self.text.rsplit('/', 1)[1]}.html" if self.text.startswith("https://") else None


SAMPLES = (
    SampleItem(
        "https://tidewater.example/one-file-is-enough", "databases,sqlite", 0.02, states="archived"
    ),
    SampleItem(
        "https://slowweb.example/links-that-last", "web,writing", 0.06, states="favorite archived"
    ),
    SampleItem("https://fieldnotes.example/a-queue-is-a-table", "databases,queues", 0.15),
    SampleItem(
        "Ask the venue: is there a second room with a door? Last year calls happened in the"
        " corridor.",
        "offsite",
        0.2,
    ),
    SampleItem("https://harbourletters.example/meetings-that-end-early", "teams,writing", 0.27),
    SampleItem(
        "https://quietpixels.example/sixty-six-characters",
        "design,typography",
        0.34,
        states="favorite",
        notes="Our reader is at 68. Compare on a phone before we change it.",
    ),
    SampleItem("https://fieldnotes.example/a-filter-at-the-door", "algorithms", 0.41),
    SampleItem(
        "https://oncallweekly.example/the-runbook-nobody-read",
        "operations,writing",
        0.5,
        states="unread",
    ),
    SampleItem(
        "Line length 66 characters, line height 1.6, one variable font. Everything else is taste.",
        "design,typography",
        0.55,
    ),
    SampleItem("https://tidewater.example/backups-are-restores", "operations,databases", 0.62),
    SampleItem("https://fieldnotes.example/counting-without-knowing", "privacy,analytics", 0.7),
    SampleItem(
        "https://quietpixels.example/never-lose-what-was-typed",
        "design,web",
        0.8,
        states="unread favorite",
    ),
    SampleItem(
        "Retro: what slowed us down was not the review but finding the page to review."
        " Short names for the ten pages we open most.",
        "teams",
        0.87,
    ),
    SampleItem(
        "https://slowweb.example/the-keyboard-is-faster",
        "design,accessibility",
        0.94,
        states="unread",
    ),
    SampleItem("https://fieldnotes.example/a-sketch-of-a-million", hours_ago=46),
    SampleItem("https://quietpixels.example/three-limits-of-waiting", hours_ago=27),
    SampleItem("https://slowweb.example/errors-people-can-read", hours_ago=21),
    SampleItem(
        "Idea: print the short link of each machine on its label, so that whoever stands in front"
        " of it finds the runbook.",
        hours_ago=4,
    ),
    SampleItem("https://tidewater.example/readers-and-a-writer", hours_ago=1.5),
)
TAG_COLORS = {
    "databases": "#11703F",
    "design": "#DB2777",
    "web": "#2F4BD6",
    "operations": "#B45309",
    "writing": "#7C3AED",
    "algorithms": "#0E7490",
    "privacy": "#B3261E",
}


def plan_items(rt: Runtime, timeline: Timeline, owner: User) -> int:
    """Plan when items are captured and saved; return their number."""
    for sample in SAMPLES:
        event = partial(_capture, rt, timeline, owner, sample)
        if sample.tags:
            timeline.add(sample.share, event)
        else:
            timeline.add_recent(timedelta(hours=sample.hours_ago), event)
    timeline.add_recent(timedelta(hours=1), partial(_set_tag_colors, rt, owner))
    return len(SAMPLES)


async def _capture(rt: Runtime, timeline: Timeline, owner: User, sample: SampleItem) -> None:
    """Capture and describe an item as usual, except that its page comes from a file."""
    async with rt.db.write() as session:
        states = dict.fromkeys(sample.states.split(), True)
        new = ItemCreate.model_validate({"text": sample.text, "notes": sample.notes, **states})
        item = (await service.capture_item(session, rt, owner, new)).item
        if sample.article is not None:
            # Loads the parser of articles, which takes as long as all the rest of the command.
            from refract.library.enrichment.extractor import extract_page  # noqa: PLC0415

            page = extract_page(_read_article(sample.article), sample.text)
            await service.store_page(session, rt, item, page)
    await enrich_item(rt, EnrichItem(item_id=item.id, resumed=True))
    if sample.tags:
        event = partial(_confirm, rt, owner, item.id, sample.tags.split(","))
        timeline.add_at(rt.clock.now() + _REVIEW_DELAY, event)


async def _confirm(rt: Runtime, owner: User, item_id: int, tags: Sequence[str]) -> None:
    async with rt.db.write() as session:
        locked = await service.lock_item(session, rt, owner.id, item_id)
        await service.confirm_item(locked, ItemConfirmation(new_tags=list(tags)))


async def _set_tag_colors(rt: Runtime, owner: User) -> None:
    async with rt.db.write() as session:
        for key, tag in (
            await personal_tags.find_tags_by_key(session, owner.id, TAG_COLORS)
        ).items():
            await personal_tags.change_tag(session, owner.id, tag.id, color=TAG_COLORS[key])


def _read_article(name: str) -> str:
    return resources.files("refract.cli.demo").joinpath("articles", name).read_text("utf-8")
