"""Base classes of errors.

A feature subclasses one; its docstring is the message that users read.
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from refract.core.phrases import CountPhrase, Phrase

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""The boundaries between words of a class name: `NotABackup` is not, a, backup."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """An invalid field of the input, and how to correct it."""

    field: str
    message: str


class RefractError(Exception):
    """Something went wrong."""

    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "INTERNAL_ERROR"
    template: ClassVar[str] = "Something went wrong."

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.code = _WORD_STARTS.sub("_", cls.__name__).upper()
        cls.template = " ".join((cls.__doc__ or cls.template).split())

    def __init__(self, *, errors: list[FieldError] | None = None, **facts: object) -> None:
        self.errors = errors or []
        self.facts = facts
        self.message: str = Phrase(self.template, **facts)
        super().__init__(self.message)


class Malformed(RefractError):
    """The request couldn't be read."""

    status = 400
    exit_code = 2


class Unauthenticated(RefractError):
    """Sign in, or send a valid API key."""

    status = 401


class Forbidden(RefractError):
    """You don't have permission to do this."""

    status = 403


class NotFound(RefractError):
    """There's nothing here."""

    status = 404


class Conflict(RefractError):
    """This conflicts with the current state."""

    status = 409


ExpectedVersions = frozenset[int] | None
"""Versions of a resource that a change is meant for; None for any."""


class VersionMismatch(RefractError):
    """This was changed in the meantime. Reload it and repeat your change."""

    status = 412


class Invalid(RefractError):
    """Some values are invalid."""

    status = 422
    exit_code = 2


class Limited(RefractError):
    """Too many requests. Try again in {wait}."""

    status = 429

    def __init__(
        self, *, retry_after: int, limit: int = 0, remaining: int = 0, **facts: object
    ) -> None:
        self.retry_after = max(1, retry_after)
        self.limit = limit
        self.remaining = remaining
        wait = CountPhrase("{n} second", "{n} seconds", self.retry_after)
        super().__init__(errors=None, wait=wait, limit=limit, **facts)


class Unavailable(RefractError):
    """A required service is unavailable. Try again in a moment."""

    status = 503
    retry_after: ClassVar[int] = 2


KINDS: tuple[type[RefractError], ...] = (
    Malformed,
    Unauthenticated,
    Forbidden,
    NotFound,
    Conflict,
    VersionMismatch,
    Invalid,
    Limited,
    Unavailable,
)


class InvalidStateTransition(Conflict):
    """{what} is {label} and can't be {action}. Allowed now: {allowed}."""

    def __init__(
        self, *, what: Phrase, state: str, label: Phrase, action: Phrase, allowed: Phrase
    ) -> None:
        super().__init__(what=what, label=label, action=action, allowed=allowed)
        self.extra = {"state": state, "allowed": allowed.split(", ")}
        """Members of the problem document for programs: the state's value and the actions."""


class NothingToUndo(Conflict):
    """Nothing to undo. Only the latest change can be undone, within 24 hours."""


class StoreUnavailable(Unavailable):
    """The database is unavailable and nothing was changed. Try again in a moment."""


class StoreUnreachable(Unavailable):
    """The database {where} can't be reached. Start it, or correct REFRACT_DATABASE_URL."""


class StoreBusy(Unavailable):
    """The database is busy and nothing was changed. Try again in a moment."""


class StoreOverloaded(Unavailable):
    """The database is overloaded and nothing was changed. Try again in a moment."""


class StoreFull(Unavailable):
    """The database's disk is full and nothing was changed. Free some space and try again."""


class StoreAccessDenied(Unavailable):
    """The database denied access ({reason}) and nothing was changed.

    Correct the user, the password or the privileges in REFRACT_DATABASE_URL.
    """


class StoreDamaged(Unavailable):
    """The database file is damaged.

    Stop the server and run refract restore with a backup; refract doctor shows details.
    """


class ConfigurationError(RefractError):
    """{problem} {remedy}"""

    exit_code = 2
