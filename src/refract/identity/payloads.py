"""What identity asks of the background."""

from typing import ClassVar

from refract.core.schemas import Id
from refract.jobs.payload import JobPayload


class FinishAccountDeletion(JobPayload):
    """Look again for what a deleted account left: a request that had begun before may have written after."""

    kind: ClassVar[str] = "identity.finish_leaving"
    user_id: Id


class LogRevocations(JobPayload):
    """Write new revocations to the list that a restored backup is brought up to date with."""

    kind: ClassVar[str] = "identity.log_revocations"
