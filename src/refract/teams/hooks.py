"""What features above keep for teams. `refract.registry` lists their hooks."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from refract.core.db.session import WriteSession

UpdateMembers = Callable[[WriteSession, int, Collection[int], datetime], Awaitable[None]]
"""Updates what these users may do, after they have joined or left the team with this id.

In the transaction of the change, whose lock on the team it relies on.
"""
ReleaseTeam = Callable[[WriteSession, int], Awaitable[None]]
"""Removes the team with this id, which is being deleted, from everything that it co-owns.

Raises an error if it owns something that would be left without an owner.
"""


@dataclass(frozen=True, slots=True)
class TeamHook:
    """One feature's share in changes of teams."""

    update_members: UpdateMembers
    release_team: ReleaseTeam
