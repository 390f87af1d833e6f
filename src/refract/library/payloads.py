"""What the library asks of the outbox."""

from typing import ClassVar

from refract.jobs.payload import JobPayload


class EnrichItem(JobPayload):
    """Read the page if there is one, and propose a title, a summary and tags."""

    kind: ClassVar[str] = "library.enrich"

    item_id: int
    resumed: bool = False
    """The page has been read and the offline proposal shown: only the model is still to be asked."""


class FailStuckItems(JobPayload):
    """Tell the person of items whose job died with its worker."""

    kind: ClassVar[str] = "library.fail_stuck"


class RecountUsage(JobPayload):
    """Compare what everybody is said to store with what is there, and set it right."""

    kind: ClassVar[str] = "library.recount_usage"
