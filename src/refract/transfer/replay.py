"""Replay of the revocation log on a restored database."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import update

from refract.core.db.bulk import get_rowcount, iter_batches
from refract.core.db.session import WriteSession
from refract.core.errors import Invalid
from refract.core.runtime import Runtime
from refract.identity import tombstones
from refract.identity.account_deletion import delete_restored_account
from refract.identity.models import ApiKey, KeyStatus, User, UserRole, UserStatus
from refract.identity.personal_data import PersonalDataHook
from refract.identity.revocation_log import (
    Revocation,
    append_revocations,
    get_log_path,
    read_revocations,
)
from refract.teams.hooks import TeamHook
from refract.teams.service import demote_restored_managers, remove_restored_members


class RevocationListMissing(Invalid):
    """The list of revocations {path} doesn't exist."""


class ReplayResult(NamedTuple):
    """The numbers of replayed revocations."""

    keys: int
    suspended: int
    deleted: int
    barred: int
    demoted: int
    members: int
    managers: int


def check_lists(extra: Iterable[Path]) -> None:
    """Raise `RevocationListMissing` if one of the lists is not there."""
    for path in extra:
        if not path.is_file():
            raise RevocationListMissing(path=path)


async def replay_revocations(
    rt: Runtime,
    hooks: Sequence[PersonalDataHook],
    team_hooks: Sequence[TeamHook],
    extra: Sequence[Path] = (),
) -> ReplayResult:
    """Apply revocations, suspensions, deletions, bans, demotions and departures since the backup.

    Reads the log beside the archived clicks (there, or restored), and those in `extra`.
    """
    check_lists(extra)
    entries = list(read_revocations(get_log_path(rt.settings), *extra).values())
    async with rt.db.write() as session:
        keys, suspended, demoted = await _revoke_again(session, rt, entries)
        for batch in iter_batches(_select_ids(entries, "allowed")):
            await tombstones.lift_bans(session, batch)
        barred_before = await tombstones.count_tombstones(session)
    members = await _remove_again(rt, team_hooks, entries)
    managers = await _demote_again(rt, entries)
    deleted = await _delete_again(rt, hooks, entries)
    async with rt.db.write() as session:
        for entry in entries:
            if entry.state == "barred" and entry.digest:
                await tombstones.bar_digest(session, rt, entry.id, entry.digest)
        barred = await tombstones.count_tombstones(session) - barred_before
    await append_revocations(rt)  # keeps what came from `extra`
    return ReplayResult(keys, suspended, deleted, barred, demoted, members, managers)


async def _revoke_again(
    session: WriteSession, rt: Runtime, entries: Sequence[Revocation]
) -> tuple[int, int, int]:
    """Revoke keys, suspend users and demote administrators. Return the numbers of each."""
    revoked, suspended, demoted = (
        _select_ids(entries, state) for state in ("revoked", "suspended", "demoted")
    )
    status, role = (UserStatus.ACTIVE, UserStatus.SUSPENDED), (UserRole.ADMIN, UserRole.USER)
    return (
        await _change_rows(session, ApiKey, revoked, "status", KeyStatus.ACTIVE, KeyStatus.REVOKED),
        await _change_rows(session, User, suspended, "status", *status, held_at=rt.clock.now()),
        await _change_rows(session, User, demoted, "role", *role, admin_by_setting=None),
    )


def _select_ids(entries: Iterable[Revocation], state: str) -> list[int]:
    return [entry.id for entry in entries if entry.state == state]


async def _change_rows(
    session: WriteSession, model: Any, ids: list[int], field: str, old: str, new: str, **more: Any
) -> int:
    """Change `field` from `old` to `new` in rows with the old value. Return their number."""
    changed = 0
    for batch in iter_batches(ids):
        conditions = (model.id.in_(batch), getattr(model, field) == old)
        result = await session.execute(
            update(model).where(*conditions).values({field: new, **more})
        )
        changed += get_rowcount(result)
    return changed


async def _remove_again(
    rt: Runtime, hooks: Sequence[TeamHook], entries: Sequence[Revocation]
) -> int:
    """Remove who has left a team since, and all members of teams that were deleted."""
    left: dict[int, set[int]] = defaultdict(set)
    for entry in entries:
        if entry.state == "left" and entry.team is not None:
            left[entry.team].add(entry.id)
    closed = {entry.id for entry in entries if entry.subject == "team"}
    removed = 0
    for team_id in sorted({*left, *closed}):
        user_ids = None if team_id in closed else left[team_id]
        async with rt.db.write() as session:
            removed += await remove_restored_members(
                session, team_id, user_ids, hooks, rt.clock.now()
            )
    return removed


async def _demote_again(rt: Runtime, entries: Sequence[Revocation]) -> int:
    """Demote managers of teams who have been demoted since."""
    demoted: dict[int, set[int]] = defaultdict(set)
    for entry in entries:
        if entry.state == "not manager" and entry.team is not None:
            demoted[entry.team].add(entry.id)
    changed = 0
    for team_id, user_ids in sorted(demoted.items()):
        async with rt.db.write() as session:
            changed += await demote_restored_managers(session, team_id, user_ids)
    return changed


async def _delete_again(
    rt: Runtime, hooks: Sequence[PersonalDataHook], entries: Sequence[Revocation]
) -> int:
    allowed, deleted = set(_select_ids(entries, "allowed")), 0
    gone = (entry for entry in entries if entry.subject == "person" and entry.state == "deleted")
    for entry in sorted(gone, key=lambda entry: entry.id):
        async with rt.db.write() as session:
            deleted += await delete_restored_account(
                session,
                rt,
                entry.id,
                hooks,
                heir_id=entry.heir,
                heir_team=entry.heir_team,
                bar=entry.id not in allowed,
            )
    return deleted
