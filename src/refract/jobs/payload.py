"""What a job is about, and the claim under which it is being worked on."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, PrivateAttr

from refract.core.clock import Clock


@dataclass(slots=True, eq=False)
class JobClaim:
    """One worker's hold on one job. `attempt` and `locked_by` fence every later write."""

    job_id: int
    kind: str
    payload: dict[str, Any]
    attempt: int
    locked_by: str
    clock: Clock
    renewed_at: float
    """By the worker's own monotonic clock, taken before the database was asked."""
    share: int = 0
    """Whose turn it was: a person's id, or one of the common shares."""
    is_finished: bool = False
    """The handler ended the job in its own transaction."""


class JobPayload(BaseModel):
    """The base of every payload. A subclass names its `kind`, which stays the same when the class is renamed or moved."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClassVar[str]
    _claim: JobClaim | None = PrivateAttr(default=None)

    def __eq__(self, other: object) -> bool:
        """Two payloads that ask for the same are equal, whoever is working on one of them."""
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), self.model_dump_json()))

    @property
    def claim(self) -> JobClaim | None:
        """The claim it came with; None when nobody claimed it, as when a command calls a handler itself."""
        return self._claim

    def bind_claim(self, claim: JobClaim) -> None:
        self._claim = claim
