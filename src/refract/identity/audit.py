"""The audit log: who did what, and who tried in vain."""

from datetime import datetime, timedelta

from sqlalchemy import delete, select
from structlog.contextvars import get_contextvars

from refract.core.db import ReadSession, WriteSession
from refract.core.page import Cursors, Page, after
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from refract.identity.payloads import LogRevocations
from refract.identity.revocation_log import REVOKING_ACTIONS
from refract.jobs.models import MAINTENANCE
from refract.jobs.queue import enqueue

DOOR = "door"
"""The logging context under which a command line says that it is one."""


def record(
    session: WriteSession,
    action: str,
    *,
    at: datetime,
    actor_id: int | None = None,
    target: object = None,
    detail: str | None = None,
) -> None:
    """Add a line, in the transaction of the change it tells of. Callers pass ids and words, never a secret.

    Where there is no request, the door that the change came through stands in its place.
    """
    context = get_contextvars()
    session.add(
        AuditEntry(
            id=session.ids.next_id(),
            at=at,
            actor_id=actor_id,
            action=action,
            target=None if target is None else str(target)[:200],
            detail=detail or None,
            request_id=context.get("request_id") or context.get(DOOR),
        )
    )


async def note(
    session: WriteSession, rt: Runtime, action: str, *, actor: User | None = None, target: str | None = None, detail: str | None = None
) -> None:
    """Add a line at an edge, where there is a runtime at hand."""
    record(session, action, at=rt.clock.now(), actor_id=actor.id if actor else None, target=target, detail=detail)
    if action in REVOKING_ACTIONS:
        await enqueue(session, rt, LogRevocations(), share=MAINTENANCE)


async def note_export(rt: Runtime, what: str, *, by: int | None, target: object = None) -> None:
    """Add a line, in a transaction of its own, before a file with people's data leaves."""
    async with rt.db.write() as session:
        record(session, f"{what}.exported", at=rt.clock.now(), actor_id=by, target=target)


async def read_log(session: ReadSession, cursors: Cursors, *, limit: int, cursor: str | None) -> Page[AuditEntry]:
    """Newest first."""
    question = ["audit"]
    wanted = select(AuditEntry).order_by(AuditEntry.at.desc(), AuditEntry.id.desc()).limit(limit + 1)
    if cursor:
        wanted = wanted.where(after([AuditEntry.at, AuditEntry.id], cursors.read(question, cursor), descending=True))
    return cursors.page(question, list(await session.scalars(wanted)), limit, lambda row: (row.at, row.id))


async def forget_old(session: WriteSession, rt: Runtime) -> None:
    await session.execute(delete(AuditEntry).where(AuditEntry.at < rt.clock.now() - timedelta(days=rt.settings.audit_days)))
