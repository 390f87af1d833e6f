"""Revocations since a backup was made, applied to the database that it was restored into."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import update

from refract.admin.parts import PARTS
from refract.core.errors import Invalid
from refract.core.rows import slices
from refract.core.runtime import Runtime
from refract.identity.leaving import delete_restored
from refract.identity.models import ApiKey, KeyStatus, User, UserStatus
from refract.identity.revocation_log import append_revocations, log_path, read_log


class ReplayListAbsent(Invalid):
    """{path}, the list of revocations, does not exist."""


class Replayed(NamedTuple):
    """What was taken back after a restore."""

    keys: int
    suspended: int
    deleted: int


async def replay_revocations(rt: Runtime, extra: Sequence[Path] = ()) -> Replayed:
    """Revoke, suspend and delete again what was revoked, suspended or deleted after the backup was made.

    Reads the list that is (or was restored) beside the archived clicks, and `extra` ones.
    """
    for path in extra:
        if not path.is_file():
            raise ReplayListAbsent(path=path)
    entries = [entry for path in (log_path(rt.settings), *extra) for entry in read_log(path).values()]
    keys = [entry.id for entry in entries if entry.subject == "key"]
    suspended = [entry.id for entry in entries if entry.state == "suspended"]
    gone = {entry.id: entry.heir for entry in entries if entry.state == "deleted"}
    counts = [0, 0, 0]
    async with rt.db.write() as session:
        for some in slices(keys):
            alive = (ApiKey.id.in_(some), ApiKey.status == KeyStatus.ACTIVE)
            done = await session.execute(update(ApiKey).where(*alive).values(status=KeyStatus.REVOKED))
            counts[0] += done.rowcount  # type: ignore[attr-defined]  # an update has one
        for some in slices(suspended):
            held = (User.id.in_(some), User.status == UserStatus.ACTIVE)
            done = await session.execute(update(User).where(*held).values(status=UserStatus.SUSPENDED, held_at=rt.clock.now()))
            counts[1] += done.rowcount  # type: ignore[attr-defined]  # an update has one
    for user_id, heir in sorted(gone.items()):
        async with rt.db.write() as session:
            counts[2] += await delete_restored(session, rt, user_id, PARTS, heir_id=heir)
    await append_revocations(rt)  # lists from elsewhere count from now on
    return Replayed(*counts)
