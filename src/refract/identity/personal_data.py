"""What features keep of a person: each says how to give it out and how it leaves, and `admin.parts` gathers them.

A feature above identity writes one `Part` and `admin.parts` names it in `PARTS`; neither identity nor the other features know of it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User


@dataclass(frozen=True, slots=True)
class AccountDeletion:
    """Somebody whose account is being deleted, and who takes over what can be taken over; nobody when that is None."""

    user: User
    heir: User | None = None


ExportPersonalData = Callable[[Runtime, User], AsyncIterator[dict[str, Any]]]
"""Everything of a person's, one JSON-ready object at a time. It opens and closes its own read sessions, so that none stays open while
somebody reads slowly."""

ErasePersonalData = Callable[[WriteSession, Runtime, AccountDeletion], Awaitable[None]]
"""Part with a person, in the transaction that deletes the account."""


@dataclass(frozen=True, slots=True)
class PersonalDataHook:
    """One feature's share in a person's data. `name` is its member in the export (plural, snake_case), if it has
    anything to export."""

    name: str
    export: ExportPersonalData | None
    erase: ErasePersonalData
