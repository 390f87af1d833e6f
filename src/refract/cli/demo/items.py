"""Items of the demo: some saved, some to review."""

from dataclasses import dataclass

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library import service
from refract.library.enrichment.types import EnrichmentProposal, SuggestedTag
from refract.library.schemas import ItemConfirmation, ItemCreate


@dataclass(frozen=True)
class SampleItem:
    """An item and its suggestions. With `tags` it is saved; otherwise it waits for review."""

    text: str
    title: str
    summary: str
    tags: str = ""
    proposed: tuple[tuple[str, float, str], ...] = ()


CONFIRMED_SAMPLES = (
    SampleItem(
        "https://www.w3.org/Provider/Style/URI",
        "Cool URIs don’t change",
        "What makes a good address, and why pages should never move.",
        "web,design",
    ),
    SampleItem(
        "https://www.sqlite.org/whentouse.html",
        "Appropriate uses for SQLite",
        "Where one file beats a server, and where it does not.",
        "databases",
    ),
    SampleItem(
        "https://arxiv.org/abs/1706.03762",
        "Attention is all you need",
        "The paper that replaced recurrence by attention.",
        "papers,models",
    ),
    SampleItem(
        "https://www.postgresql.org/docs/current/explicit-locking.html",
        "Explicit locking in PostgreSQL",
        "Row locks, advisory locks, SKIP LOCKED.",
        "databases,queues",
    ),
    SampleItem(
        "https://www.rfc-editor.org/rfc/rfc9457",
        "Problem details for HTTP",
        "One shape for errors that programs understand.",
        "web,standards",
    ),
    SampleItem(
        "https://en.wikipedia.org/wiki/Bloom_filter",
        "Bloom filter",
        "A small set that may be wrong in one direction only.",
        "algorithms",
    ),
    SampleItem(
        "A queue is a table: claim by an update, give back by a lease, wake by a notification.",
        "A queue is a table",
        "",
        "queues,databases",
    ),
    SampleItem(
        "Line length 66 characters, line height 1.6, one variable font. Everything else is taste.",
        "Typography in one line",
        "",
        "design",
    ),
)
PENDING_SAMPLES = (
    SampleItem(
        "https://www.rfc-editor.org/rfc/rfc9110",
        "HTTP semantics",
        "Methods, status codes and fields, in one place at last.",
        "",
        (
            ("web", 0.93, "On 2 similar items"),
            ("standards", 0.81, "Keyword of the page"),
            ("http", 0.46, "In the title"),
        ),
    ),
    SampleItem(
        "https://en.wikipedia.org/wiki/HyperLogLog",
        "HyperLogLog",
        "Counting different things in a kilobyte, give or take two percent.",
        "",
        (("algorithms", 0.88, "On 1 similar item"), ("counting", 0.52, "Frequent in the text")),
    ),
    SampleItem(
        "https://www.sqlite.org/wal.html",
        "Write-ahead logging",
        "How readers and a writer get on with each other.",
        "",
        (("databases", 0.95, "On 3 similar items"), ("sqlite", 0.64, "Keyword of the page")),
    ),
    SampleItem(
        "Idea: show on every link who else in the team uses it.",
        "Idea: who uses a link",
        "",
        "",
        (("ideas", 0.58, "the first word"),),
    ),
    SampleItem(
        "https://www.nngroup.com/articles/response-times-3-important-limits/",
        "Response times: the three limits",
        "A tenth of a second, a second, ten.",
        "",
        (
            ("design", 0.77, "On 2 similar items"),
            ("performance", 0.49, "Mentioned 3 times in the text"),
        ),
    ),
)


async def fill_items(rt: Runtime, clock: ManualClock, owner: User) -> int:
    for sample in (*CONFIRMED_SAMPLES, *PENDING_SAMPLES):
        await _create_item(rt, owner, sample)
        clock.advance(45)
    return len(CONFIRMED_SAMPLES) + len(PENDING_SAMPLES)


async def _create_item(rt: Runtime, owner: User, sample: SampleItem) -> None:
    """Capture, enrich and perhaps confirm items as usual, but without fetching their pages."""
    proposal = EnrichmentProposal(
        sample.title, sample.summary or None, [SuggestedTag(*tag) for tag in sample.proposed]
    )
    async with rt.db.write() as session:
        item = (await service.capture_item(session, rt, owner, ItemCreate(text=sample.text))).item
        await service.apply_proposal(session, rt, item, proposal, final=True)
        if sample.tags:
            held = await service.lock_item(session, rt, owner.id, item.id)
            await service.confirm_item(held, ItemConfirmation(new_tags=sample.tags.split(",")))
