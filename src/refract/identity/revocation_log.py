"""The list of revocations beside the database, which a restored backup is brought up to date with.

A backup is older than the revocations that followed it. Each revoked key and each suspended or erased account therefore leaves a line in
`revocations.jsonl`, in the directory of archived clicks, which all workers share. Lines are only ever added. They hold ids, no names.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import select

from refract.core.db import ReadSession
from refract.core.runtime import Runtime
from refract.core.settings import Settings
from refract.identity.models import ApiKey, AuditEntry, KeyStatus, User, UserStatus

LOG_NAME: Final = "revocations.jsonl"
DELETED_ACTION: Final = "account.deleted"
REVOKING_ACTIONS: Final = frozenset({"key.revoked", "status.changed", DELETED_ACTION})
"""Lines of the audit log after which the list is brought up to date."""

State = Literal["revoked", "suspended", "active", "deleted"]


class Revocation(NamedTuple):
    """The state of one key or account. `heir` is who took over the links of a deleted one."""

    subject: Literal["key", "person"]
    id: int
    state: State
    heir: int | None = None


def log_path(settings: Settings) -> Path:
    return settings.effective_archive_dir / LOG_NAME


def read_log(path: Path) -> dict[tuple[str, int], Revocation]:
    """Return the last state of each key and account in the list; a line that was cut off is no line."""
    found: dict[tuple[str, int], Revocation] = {}
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            told: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        entry = Revocation(told["subject"], int(told["id"]), told["state"], told.get("heir"))
        known = found.get(entry[:2])
        if known is None or known.state not in ("revoked", "deleted"):
            found[entry[:2]] = entry
    return found


async def append_revocations(rt: Runtime) -> int:
    """Add what the database knows and the list does not. Return how many lines were added."""
    async with rt.db.read() as session:
        now = [entry async for entry in _current(session)]
    path = log_path(rt.settings)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "rb+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two workers must not both add a line
        news = list(_news(read_log(path), now))
        at = rt.clock.now().isoformat()
        lines = [json.dumps({"at": at, **entry._asdict()}) for entry in news]
        file.write(_tail(file) + "".join(f"{line}\n" for line in lines).encode())
        os.fsync(file.fileno())
    return len(news)


def _tail(file: Any) -> bytes:
    """Return the newline that a writer killed in the middle of a line did not write."""
    size = file.seek(0, os.SEEK_END)
    return b"\n" if size and os.pread(file.fileno(), 1, size - 1) != b"\n" else b""


def _news(known: dict[tuple[str, int], Revocation], now: Iterable[Revocation]) -> Iterator[Revocation]:
    suspended = {key for key, entry in known.items() if entry.state == "suspended"}
    for entry in now:
        suspended.discard(entry[:2])
        if entry[:2] not in known or known[entry[:2]].state != entry.state:
            yield entry
    for _, user_id in sorted(suspended):
        yield Revocation("person", user_id, "active")


async def _current(session: ReadSession) -> Any:
    for key_id in await session.scalars(select(ApiKey.id).where(ApiKey.status == KeyStatus.REVOKED).order_by(ApiKey.id)):
        yield Revocation("key", key_id, "revoked")
    deleted = select(AuditEntry.target, AuditEntry.detail).where(AuditEntry.action == DELETED_ACTION)
    heirs = {row.target: int(row.detail) for row in await session.execute(deleted) if row.detail}
    gone = select(User.id, User.status).where(User.status != UserStatus.ACTIVE).order_by(User.id)
    for row in await session.execute(gone):
        state: State = "deleted" if row.status == UserStatus.DELETED else "suspended"
        yield Revocation("person", row.id, state, heirs.get(str(row.id)) if state == "deleted" else None)
