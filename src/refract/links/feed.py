"""News of links and names for whoever keeps answers ready: every change is told here, in the transaction that makes it."""

from collections.abc import Sequence
from dataclasses import dataclass

from refract.core.db import WriteSession

_PENDING = "link_changes"


@dataclass(frozen=True, slots=True)
class Change:
    """A target that is no longer what it was, and every name under which somebody may have asked for it.

    `names` holds what it was called before as well as after the change; the code follows from the id.
    """

    target_id: int
    version: int
    names: tuple[str, ...]


async def changed(session: WriteSession, changes: Sequence[Change]) -> None:
    """Tell of changes that are committed with this session, or not at all."""
    session.info.setdefault(_PENDING, []).extend(changes)


def told(session: WriteSession) -> list[Change]:
    """What this session has told so far."""
    return list(session.info.get(_PENDING, []))
