"""Job handlers: their registration, and the outcome of a failed job."""

import errno
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from refract.core.errors import RefractError, Unavailable
from refract.core.log import redact
from refract.core.runtime import Runtime
from refract.jobs.errors import LeaseLost, TryAgain
from refract.jobs.models import DEFAULT_MAX_TRIES
from refract.jobs.payload import JobClaim, JobPayload

DEFAULT_BACKOFF = (0.0, 30.0, 300.0)
"""Seconds before the first, second and third try."""

MAX_KIND_LENGTH = 60
MAX_CODE_LENGTH = 50
MAX_MESSAGE_LENGTH = 2000
_HANDLER_ATTRIBUTE = "__refract_handles__"
_UNREACHABLE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}

PayloadT = TypeVar("PayloadT", bound=JobPayload)
JobFunction = Callable[[Runtime, PayloadT], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class JobDone:
    """The job succeeded."""


@dataclass(frozen=True, slots=True)
class JobFailed:
    """The job failed and will be retried."""

    code: str
    message: str
    delay: float


@dataclass(frozen=True, slots=True)
class JobDead:
    """The job failed permanently, or was tried often enough."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class JobReleased:
    """The job was interrupted through no fault of its own: the attempt does not count."""


@dataclass(frozen=True, slots=True)
class JobLost:
    """Another worker has the job: nothing is written about it."""


JobOutcome = JobDone | JobFailed | JobDead | JobReleased | JobLost


@dataclass(frozen=True, slots=True)
class HandlerSpec:
    """A handler and its rules."""

    payload: type[JobPayload]
    run: JobFunction[Any]
    tries: int
    backoff: tuple[float, ...]
    timeout: float | None
    transient_errors: tuple[type[Exception], ...]

    def parse_payload(self, claim: JobClaim) -> JobPayload:
        """Return the payload with its claim.

        Raises `ValidationError` if it no longer fits its type.
        """
        payload = self.payload.model_validate(claim.payload)
        payload.bind_claim(claim)
        return payload

    def decide_outcome(self, error: Exception, attempt: int) -> JobOutcome:
        """Decide whether a failed job is retried. Only transient errors are."""
        if isinstance(error, LeaseLost):
            return JobLost()
        code, message = describe_error(error)
        if not self._is_transient(error) or attempt >= self.tries:
            return JobDead(code, message)
        after = error.after if isinstance(error, TryAgain) else None
        return JobFailed(
            code,
            message,
            self.backoff[min(attempt, len(self.backoff) - 1)] if after is None else after,
        )

    def _is_transient(self, error: Exception) -> bool:
        return isinstance(
            error, (TryAgain, Unavailable, TimeoutError, ConnectionError, *self.transient_errors)
        ) or (isinstance(error, OSError) and error.errno in _UNREACHABLE)


def handles(
    payload: type[PayloadT],
    *,
    tries: int = DEFAULT_MAX_TRIES,
    backoff: tuple[float, ...] = DEFAULT_BACKOFF,
    timeout: float | None = None,
    transient_errors: tuple[type[Exception], ...] = (),
) -> Callable[[JobFunction[PayloadT]], JobFunction[PayloadT]]:
    """Mark a function as the handler of a payload.

    `backoff` holds the seconds before each try; its last value applies to all further ones.
    `timeout` ends a try that takes longer. `transient_errors` names further errors that are
    retried, besides timeouts, lost connections, `Unavailable` and `TryAgain`. Every other error
    ends the job immediately.
    """
    if tries < 1 or not backoff or not 1 <= len(payload.kind) <= MAX_KIND_LENGTH:
        problem = (
            f"{payload.__name__}: a handler needs a try, a back-off and a kind of at most"
            f" {MAX_KIND_LENGTH} characters"
        )
        raise ValueError(problem)

    def mark(function: JobFunction[PayloadT]) -> JobFunction[PayloadT]:
        setattr(
            function,
            _HANDLER_ATTRIBUTE,
            HandlerSpec(payload, function, tries, backoff, timeout, transient_errors),
        )
        return function

    return mark


class HandlerRegistry:
    """The handlers that this process knows. Jobs of an unknown kind are left to others."""

    def __init__(self, specs: Mapping[str, HandlerSpec]) -> None:
        self._specs = dict(specs)

    @classmethod
    def from_functions(cls, functions: Iterable[JobFunction[Any]]) -> "HandlerRegistry":
        found: dict[str, HandlerSpec] = {}
        for function in functions:
            spec = getattr(function, _HANDLER_ATTRIBUTE, None)
            if not isinstance(spec, HandlerSpec):
                problem = f"{function!r} is not marked with @handles"
                raise TypeError(problem)
            if spec.payload.kind in found:
                problem = f"two handlers for {spec.payload.kind}"
                raise ValueError(problem)
            found[spec.payload.kind] = spec
        return cls(found)

    @property
    def tries(self) -> dict[str, int]:
        """Return every known kind with its maximum number of tries."""
        return {kind: spec.tries for kind, spec in self._specs.items()}

    def __getitem__(self, kind: str) -> HandlerSpec:
        return self._specs[kind]


def describe_error(error: Exception) -> tuple[str, str]:
    """Return a code and a message that fit the row.

    Secrets, and characters that a database does not store, are removed.
    """
    if isinstance(error, RefractError | TryAgain):
        code, message = error.code, error.message
    elif isinstance(error, ValidationError):
        code, message = (
            "PAYLOAD_INVALID",
            "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()),
        )
    else:
        code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(error).__name__).upper()
        message = str(error)
    clean = str(redact(None, "", {"message": message})["message"])
    storable = clean.replace("\0", "").encode("utf-8", "replace").decode()
    return code[:MAX_CODE_LENGTH], storable[:MAX_MESSAGE_LENGTH]
