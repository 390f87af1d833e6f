"""Payloads of the feature's background jobs."""

from typing import ClassVar

from refract.core.schemas import Id
from refract.jobs.payload import JobPayload


class FinishAccountDeletion(JobPayload):
    """Erase the data of a deleted account again: a request in flight may have written more."""

    kind: ClassVar[str] = "identity.finish_leaving"
    user_id: Id


class SendInvitation(JobPayload):
    """Send an invitation by email. The payload contains no link: each attempt makes its own."""

    kind: ClassVar[str] = "identity.send_invitation"
    invitation_id: Id


class LogRevocations(JobPayload):
    """Append new revocations to the log that is replayed after a restore."""

    kind: ClassVar[str] = "identity.log_revocations"
