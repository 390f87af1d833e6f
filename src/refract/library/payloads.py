"""Jobs of the library."""

from typing import ClassVar

from refract.jobs.payload import JobPayload


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
