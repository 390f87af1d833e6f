"""Items of the demo: some that were filed, some that wait for a decision."""

from dataclasses import dataclass

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library import service
from refract.library.enrich.material import Proposal, Suggested
from refract.library.schemas import Confirmation, ItemCreate


@dataclass(frozen=True)
class Sample:
    """Something captured, and what the assistant makes of it. `tags` are filed; what is proposed waits."""

    text: str
    title: str
    summary: str
    tags: str = ""
    proposed: tuple[tuple[str, float, str], ...] = ()


FILED = (
    Sample(
        "https://www.w3.org/Provider/Style/URI",
        "Cool URIs don’t change",
        "What makes a good address, and why pages should never move.",
        "web,design",
    ),
    Sample(
        "https://www.sqlite.org/whentouse.html",
        "Appropriate uses for SQLite",
        "Where one file beats a server, and where it does not.",
        "databases",
    ),
    Sample(
        "https://arxiv.org/abs/1706.03762", "Attention is all you need", "The paper that replaced recurrence by attention.", "papers,models"
    ),
    Sample(
        "https://www.postgresql.org/docs/current/explicit-locking.html",
        "Explicit locking in PostgreSQL",
        "Row locks, advisory locks, SKIP LOCKED.",
        "databases,queues",
    ),
    Sample(
        "https://www.rfc-editor.org/rfc/rfc9457",
        "Problem details for HTTP",
        "One shape for errors that programs understand.",
        "web,standards",
    ),
    Sample(
        "https://en.wikipedia.org/wiki/Bloom_filter", "Bloom filter", "A small set that may be wrong in one direction only.", "algorithms"
    ),
    Sample(
        "A queue is a table: claim by an update, give back by a lease, wake by a notification.",
        "A queue is a table",
        "",
        "queues,databases",
    ),
    Sample(
        "Line length 66 characters, line height 1.6, one variable font. Everything else is taste.", "Typography in one line", "", "design"
    ),
)
WAITING = (
    Sample(
        "https://www.rfc-editor.org/rfc/rfc9110",
        "HTTP semantics",
        "Methods, status codes and fields, in one place at last.",
        "",
        (("web", 0.93, "2 similar items have it"), ("standards", 0.81, "in the address"), ("http", 0.46, "in the title")),
    ),
    Sample(
        "https://en.wikipedia.org/wiki/HyperLogLog",
        "HyperLogLog",
        "Counting different things in a kilobyte, give or take two percent.",
        "",
        (("algorithms", 0.88, "1 similar item has it"), ("counting", 0.52, "in the summary")),
    ),
    Sample(
        "https://www.sqlite.org/wal.html",
        "Write-ahead logging",
        "How readers and a writer get on with each other.",
        "",
        (("databases", 0.95, "3 similar items have it"), ("sqlite", 0.64, "the host")),
    ),
    Sample("Idea: show on every link who else in the team uses it.", "Idea: who uses a link", "", "", (("ideas", 0.58, "the first word"),)),
    Sample(
        "https://www.nngroup.com/articles/response-times-3-important-limits/",
        "Response times: the three limits",
        "A tenth of a second, a second, ten.",
        "",
        (("design", 0.77, "2 similar items have it"), ("performance", 0.49, "in the text")),
    ),
)


async def fill_items(rt: Runtime, clock: ManualClock, owner: User) -> int:
    for sample in (*FILED, *WAITING):
        await _keep(rt, owner, sample)
        clock.advance(45)
    return len(FILED) + len(WAITING)


async def _keep(rt: Runtime, owner: User, sample: Sample) -> None:
    """Captured, described, and perhaps confirmed: the same steps as always, without asking the pages themselves."""
    proposal = Proposal(sample.title, sample.summary or None, [Suggested(*one) for one in sample.proposed])
    async with rt.db.write() as session:
        item = (await service.capture(session, rt, owner, ItemCreate(text=sample.text))).item
        await service.proposed(session, rt, item, proposal, final=True)
        if sample.tags:
            held = await service.hold(session, rt, owner.id, item.id)
            await service.confirm(held, Confirmation(new_tags=sample.tags.split(",")))
