"""Who does what: handlers are marked where they are written and collected where the program is put together."""

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
from refract.jobs.models import DEFAULT_TRIES
from refract.jobs.payload import Claim, Payload

BACKOFF = (0.0, 30.0, 300.0)
"""Seconds before the first, second and third try."""

MAX_KIND = 60
MAX_CODE = 50
MAX_MESSAGE = 2000
_MARK = "__refract_handles__"
_UNREACHABLE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}

P = TypeVar("P", bound=Payload)
Handler = Callable[[Runtime, P], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Done:
    """It worked."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It did not work this time."""

    code: str
    message: str
    delay: float


@dataclass(frozen=True, slots=True)
class Dead:
    """It will not work, or was tried often enough."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Released:
    """It was not ended, through no fault of its own: the attempt does not count."""


@dataclass(frozen=True, slots=True)
class Lost:
    """It belongs to somebody else: nothing is written about it."""


Outcome = Done | Failed | Dead | Released | Lost


@dataclass(frozen=True, slots=True)
class Handling:
    """A handler and its rules."""

    payload: type[Payload]
    run: Handler[Any]
    tries: int
    backoff: tuple[float, ...]
    budget: float | None
    passing: tuple[type[Exception], ...]

    def read(self, claim: Claim) -> Payload:
        """The payload as the handler wants it, holding its claim. Raises `ValidationError` for one that no longer fits."""
        payload = self.payload.model_validate(claim.payload)
        payload.under(claim)
        return payload

    def judge(self, error: Exception, attempt: int) -> Outcome:
        """What an error means for the job: only what may pass by itself is tried again."""
        if isinstance(error, LeaseLost):
            return Lost()
        code, message = described(error)
        if not self._may_pass(error) or attempt >= self.tries:
            return Dead(code, message)
        given = error.after if isinstance(error, TryAgain) else None
        return Failed(code, message, self.backoff[min(attempt, len(self.backoff) - 1)] if given is None else given)

    def _may_pass(self, error: Exception) -> bool:
        return isinstance(error, (TryAgain, Unavailable, TimeoutError, ConnectionError, *self.passing)) or (
            isinstance(error, OSError) and error.errno in _UNREACHABLE
        )


def handles(
    payload: type[P],
    *,
    tries: int = DEFAULT_TRIES,
    backoff: tuple[float, ...] = BACKOFF,
    budget: float | None = None,
    passing: tuple[type[Exception], ...] = (),
) -> Callable[[Handler[P]], Handler[P]]:
    """Mark a function as the handler of a payload.

    `backoff` holds the seconds before each try, its last value standing for all further ones. `budget` ends a try that
    takes longer. `passing` names further errors that may pass by themselves, besides time-outs, lost connections,
    `Unavailable` and `TryAgain`. Every other error ends the job at once.
    """
    if tries < 1 or not backoff or not 1 <= len(payload.kind) <= MAX_KIND:
        problem = f"{payload.__name__}: a handler needs a try, a back-off and a kind of at most {MAX_KIND} characters"
        raise ValueError(problem)

    def mark(function: Handler[P]) -> Handler[P]:
        setattr(function, _MARK, Handling(payload, function, tries, backoff, budget, passing))
        return function

    return mark


class Registry:
    """The handlers that this process knows. A kind it does not know is left for others."""

    def __init__(self, handlings: Mapping[str, Handling]) -> None:
        self._handlings = dict(handlings)

    @classmethod
    def of(cls, functions: Iterable[Handler[Any]]) -> "Registry":
        found: dict[str, Handling] = {}
        for function in functions:
            handling = getattr(function, _MARK, None)
            if not isinstance(handling, Handling):
                problem = f"{function!r} is not marked with @handles"
                raise TypeError(problem)
            if handling.payload.kind in found:
                problem = f"two handlers for {handling.payload.kind}"
                raise ValueError(problem)
            found[handling.payload.kind] = handling
        return cls(found)

    @property
    def tries(self) -> dict[str, int]:
        """Every known kind, with how often it is tried."""
        return {kind: handling.tries for kind, handling in self._handlings.items()}

    def __getitem__(self, kind: str) -> Handling:
        return self._handlings[kind]


def described(error: Exception) -> tuple[str, str]:
    """A code and a sentence that fit the row, without secrets and without what a database refuses to store."""
    if isinstance(error, RefractError | TryAgain):
        code, message = error.code, error.message
    elif isinstance(error, ValidationError):
        code, message = "PAYLOAD_INVALID", "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
    else:
        code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(error).__name__).upper()
        message = str(error)
    clean = str(redact(None, "", {"message": message})["message"])
    storable = clean.replace("\0", "").encode("utf-8", "replace").decode()
    return code[:MAX_CODE], storable[:MAX_MESSAGE]
