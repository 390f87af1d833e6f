"""Personal data hooks: how each feature exports and erases what it stores about a user.

A feature above identity defines a `PersonalDataHook`, and `refract.registry` lists it; neither
identity nor the other features import it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User


@dataclass(frozen=True, slots=True)
class AccountDeletion:
    """An account that is being deleted, and who takes over its links and lists, if anyone.

    `heir_team` is the id of a team, which is locked.
    """

    user: User
    heir: User | None = None
    heir_team: int | None = None

    @property
    def has_heir(self) -> bool:
        return self.heir is not None or self.heir_team is not None


ExportPersonalData = Callable[[Runtime, User], AsyncIterator[dict[str, Any]]]
"""Yields everything of a user, one JSON-ready object at a time. It opens and closes its own read
sessions, so that none stays open while a client reads slowly."""

ErasePersonalData = Callable[[WriteSession, Runtime, AccountDeletion], Awaitable[None]]
"""Erases the data of a user, in the transaction that deletes the account."""

LockHeirTeam = Callable[[WriteSession, User, str | int, bool], Awaitable[int | None]]
"""Locks the team with a handle or id that takes over from a user, and returns its id.

None if they are not in it, or nobody else is. The last argument says that membership is no matter:
for administrators.
"""


@dataclass(frozen=True, slots=True)
class PersonalDataHook:
    """Export and erasure of one feature's data.

    `name` is its member in the export (plural, snake_case), if it has anything to export. The
    feature of teams finds those that inherit.
    """

    name: str
    export: ExportPersonalData | None
    erase: ErasePersonalData
    lock_heir_team: LockHeirTeam | None = None
