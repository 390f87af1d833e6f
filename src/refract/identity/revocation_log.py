"""The revocation log, which is kept outside the database and replayed after a restore.

A backup is older than the revocations that followed it. Each revoked key, each suspended, deleted
or barred account and each demoted administrator therefore adds a line to `revocations.jsonl`, in
the directory of archived clicks, which all workers share. The log is append-only. It contains ids
and keyed digests, no names.
"""

import fcntl
import json
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import select

from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import (
    AccountTombstone,
    ApiKey,
    AuditEntry,
    KeyStatus,
    User,
    UserRole,
    UserStatus,
)

LOG_NAME: Final = "revocations.jsonl"
DELETED_ACTION: Final = "account.deleted"
ALLOWED_ACTION: Final = "account.allowed"
_STATUS_ACTION: Final = "status.changed"
TEAM_HEIR: Final = "team"
"""The word before the id of a team that took over from a deleted account, in the audit log."""
_ROLE_ACTION: Final = "role.changed"
_JOINED_ACTION: Final = "team.member_added"
_TEAM_ROLE_ACTION: Final = "team.role_changed"
_MEMBER_ACTIONS: Final = frozenset(
    {_JOINED_ACTION, _TEAM_ROLE_ACTION, "team.member_removed", "team.left"}
)
_TEAM_DELETED_ACTION: Final = "team.deleted"
REVOKING_ACTIONS: Final = frozenset(
    {"key.revoked", _STATUS_ACTION, _ROLE_ACTION, DELETED_ACTION, ALLOWED_ACTION}
)
"""Actions of the audit log after which the revocation log is updated."""

Subject = Literal["key", "person", "ban", "role", "member", "manager", "team"]
RevocationState = Literal[
    "revoked",
    "suspended",
    "active",
    "deleted",
    "barred",
    "allowed",
    "demoted",
    "promoted",
    "left",
    "joined",
    "not manager",
    "manager",
]
_FINAL: Final = frozenset({"revoked", "deleted", "allowed"})
_LIFTABLE: Final = frozenset({"suspended", "barred", "demoted", "left", "not manager"})
_LIFTING: Final = frozenset({"joined", "manager"})
_Key = tuple[Subject, int, int | None]


class Revocation(NamedTuple):
    """The state of a key, account, ban, role, membership, management or team.

    All but keys and teams are identified by the account's id, a role in a team by its `team` too.
    `heir` or `heir_team` took over from a deleted account; `digest` identifies a barred account.
    """

    subject: Subject
    id: int
    state: RevocationState
    heir: int | None = None
    digest: str | None = None
    at: str = ""
    team: int | None = None
    heir_team: int | None = None

    @property
    def key(self) -> _Key:
        return self.subject, self.id, self.team

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(self.at)


def get_log_path(settings: Settings) -> Path:
    return settings.effective_archive_dir / LOG_NAME


def read_revocations(*paths: Path) -> dict[_Key, Revocation]:
    """Return the last state of each subject in the logs. Truncated lines are ignored."""
    found: dict[_Key, Revocation] = {}
    for entry in sorted(
        (entry for path in paths for entry in _read_lines(path)), key=lambda entry: entry.moment
    ):
        known = found.get(entry.key)
        if known is None or known.state not in _FINAL:
            found[entry.key] = entry
    return found


def _read_lines(path: Path) -> Iterator[Revocation]:
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            values: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        yield Revocation(
            values["subject"],
            int(values["id"]),
            values["state"],
            values.get("heir"),
            values.get("digest"),
            values["at"],
            values.get("team"),
            values.get("heir_team"),
        )


async def append_revocations(rt: Runtime) -> int:
    """Append what the database knows and the log does not. Return the number of lines."""
    now = rt.clock.now()  # of the state that is read, not of the line that is written
    async with rt.db.read() as session:
        audited = await _read_audit(session)
        memberships = await _read_memberships(session)
        revoked = [entry async for entry in _iter_revoked(session, audited)]
    revoked += [entry for entry in memberships if entry.state not in _LIFTING]
    lifted = [*_iter_lifted(audited), *(row for row in memberships if row.state in _LIFTING)]
    path = get_log_path(rt.settings)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(
        os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "rb+", buffering=0
    ) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two workers must not both add a line
        new_entries = list(_iter_new_entries(read_revocations(path), revoked, lifted, now))
        lines = [json.dumps(entry._asdict()) for entry in new_entries]
        file.write(_get_missing_newline(file) + "".join(f"{line}\n" for line in lines).encode())
        os.fsync(file.fileno())
    return len(new_entries)


def _get_missing_newline(file: Any) -> bytes:
    """Return the newline that a writer killed in the middle of a line did not write."""
    size = file.seek(0, os.SEEK_END)
    return b"\n" if size and os.pread(file.fileno(), 1, size - 1) != b"\n" else b""


def _iter_new_entries(
    known: dict[_Key, Revocation],
    revoked: Iterable[Revocation],
    lifted: Iterable[Revocation],
    now: datetime,
) -> Iterator[Revocation]:
    """Yield what the log lacks, with the time of the change where the audit log has it.

    A change and its reversal may both be committed before the first of them is logged; only their
    own times put them in order. After a restore the audit log may be older than the log.
    """
    for entry in revoked:
        previous = known.get(entry.key)
        if previous is None or (previous.state != entry.state and previous.state not in _FINAL):
            is_older = previous is not None and bool(entry.at) and entry.moment <= previous.moment
            yield entry._replace(at=now.isoformat()) if is_older or not entry.at else entry
    for entry in lifted:
        previous = known.get(entry.key)
        if previous is not None and previous.state in _LIFTABLE and entry.moment >= previous.moment:
            yield entry


async def _read_audit(session: ReadSession) -> dict[tuple[str, int], AuditEntry]:
    """Return the last entry of each action on each account."""
    conditions = (
        AuditEntry.action.in_((_STATUS_ACTION, _ROLE_ACTION, DELETED_ACTION, ALLOWED_ACTION)),
        AuditEntry.target.is_not(None),
    )
    entries = await session.scalars(
        select(AuditEntry).where(*conditions).order_by(AuditEntry.at, AuditEntry.id)
    )
    return {(entry.action, int(entry.target or 0)): entry for entry in entries}


async def _read_memberships(session: ReadSession) -> list[Revocation]:
    """Return the last change of each membership and role, and the teams that were deleted."""
    entries = await session.scalars(
        select(AuditEntry)
        .where(
            AuditEntry.action.in_((*_MEMBER_ACTIONS, _TEAM_DELETED_ACTION)),
            AuditEntry.target.is_not(None),
        )
        .order_by(AuditEntry.at, AuditEntry.id)
    )
    found: dict[_Key, Revocation] = {}
    for line in entries:
        team_id, at = int(line.target or 0), line.at.isoformat()
        role, _, user_id = (line.detail or "").rpartition(" ")  # "manager 12", "by group 12", "12"
        if line.action == _TEAM_DELETED_ACTION:
            entry = Revocation("team", team_id, "deleted", at=at)
        elif line.action == _TEAM_ROLE_ACTION and user_id.isdecimal():
            state: RevocationState = "manager" if role == "manager" else "not manager"
            entry = Revocation("manager", int(user_id), state, at=at, team=team_id)
        elif user_id.isdecimal():
            state = "joined" if line.action == _JOINED_ACTION else "left"
            entry = Revocation("member", int(user_id), state, at=at, team=team_id)
            if state == "joined" and entry.key in found:  # they may have been a manager before
                state = "manager" if role == "manager" else "not manager"
                again = entry._replace(subject="manager", state=state)
                found[again.key] = again
        else:  # redacted, because the actor's account was deleted
            continue
        found[entry.key] = entry
    return list(found.values())


async def _iter_revoked(
    session: ReadSession, audited: dict[tuple[str, int], AuditEntry]
) -> AsyncIterator[Revocation]:
    """Yield what is revoked now."""
    for key_id in await session.scalars(
        select(ApiKey.id).where(ApiKey.status == KeyStatus.REVOKED).order_by(ApiKey.id)
    ):
        yield Revocation("key", key_id, "revoked")
    gone = select(User.id, User.status).where(User.status != UserStatus.ACTIVE).order_by(User.id)
    for row in await session.execute(gone):
        if row.status == UserStatus.DELETED:
            line = audited.get((DELETED_ACTION, row.id))
            word, _, heir = ((line and line.detail) or "").rpartition(" ")
            heir_id = int(heir) if heir else None
            yield (
                Revocation("person", row.id, "deleted", heir_team=heir_id)
                if word == TEAM_HEIR
                else Revocation("person", row.id, "deleted", heir_id)
            )
        else:
            line = audited.get((_STATUS_ACTION, row.id))
            yield Revocation("person", row.id, "suspended", at=line.at.isoformat() if line else "")
    for tombstone in await session.scalars(select(AccountTombstone).order_by(AccountTombstone.id)):
        yield Revocation("ban", tombstone.user_id, "barred", digest=tombstone.digest)
    for (action, user_id), line in audited.items():
        if action == _ROLE_ACTION and _get_first_word(line) == UserRole.USER:
            yield Revocation("role", user_id, "demoted", at=line.at.isoformat())


def _iter_lifted(audited: dict[tuple[str, int], AuditEntry]) -> Iterator[Revocation]:
    """Yield revocations that were lifted, by the audit log.

    The state is not enough: in a restored database, accounts are active that were suspended later.
    """
    for (action, user_id), line in audited.items():
        at = line.at.isoformat()
        if action == ALLOWED_ACTION:
            yield Revocation("ban", user_id, "allowed", at=at)
        elif action == _STATUS_ACTION and line.detail == UserStatus.ACTIVE:
            yield Revocation("person", user_id, "active", at=at)
        elif action == _ROLE_ACTION and _get_first_word(line) == UserRole.ADMIN:
            yield Revocation("role", user_id, "promoted", at=at)


def _get_first_word(line: AuditEntry) -> str:
    return (line.detail or "").partition(",")[0]  # "user, by setting"
