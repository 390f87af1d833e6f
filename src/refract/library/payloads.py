"""Jobs of the library."""

from typing import ClassVar

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.jobs.models import MAINTENANCE_SHARE
from refract.jobs.payload import JobPayload
from refract.jobs.queue import enqueue


class EnrichItem(JobPayload):
    """Fetch the page if there is one, and suggest a title, a summary and tags."""

    kind: ClassVar[str] = "library.enrich"

    item_id: int
    resumed: bool = False
    """The page was fetched and the offline proposal stored: only the model is left."""


class FailStuckItems(JobPayload):
    """Mark items as failed whose job died with its worker."""

    kind: ClassVar[str] = "library.fail_stuck"


class RecountUsage(JobPayload):
    """Compare the usage of every user with what is measured, and correct it."""

    kind: ClassVar[str] = "library.recount_usage"


class PurgeDeletedWords(JobPayload):
    """Remove the words of deleted items from the index on SQLite."""

    kind: ClassVar[str] = "library.forget_words"


async def enqueue_word_purge(session: WriteSession, rt: Runtime) -> None:
    """Enqueue a purge after a deletion that must leave no words behind. Only SQLite needs it."""
    if session.dialect == "sqlite":
        await enqueue(
            session, rt, PurgeDeletedWords(), dedup=PurgeDeletedWords.kind, share=MAINTENANCE_SHARE
        )
