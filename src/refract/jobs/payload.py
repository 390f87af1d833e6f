"""Payloads of jobs, and the claim under which a job runs."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, PrivateAttr

from refract.core.clock import Clock


@dataclass(slots=True, eq=False)
class JobClaim:
    """A worker's claim on a job. `attempt` and `locked_by` fence every later write."""

    job_id: int
    kind: str
    payload: dict[str, Any]
    attempt: int
    locked_by: str
    clock: Clock
    renewed_at: float
    """By the worker's own monotonic clock, taken before the database query."""
    share: int = 0
    """A user's id, or one of the common shares."""
    is_finished: bool = False
    """Whether the handler ended the job in its own transaction."""


class JobPayload(BaseModel):
    """Base class of payloads.

    A subclass defines its `kind`, which stays the same when the class is renamed or moved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str]
    _claim: JobClaim | None = PrivateAttr(default=None)

    def __eq__(self, other: object) -> bool:
        """Return whether the contents are equal, regardless of claims."""
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.model_dump_json()))

    @property
    def claim(self) -> JobClaim | None:
        """Return the claim; None if there is none, as when a command calls a handler directly."""
        return self._claim

    def bind_claim(self, claim: JobClaim) -> None:
        self._claim = claim
