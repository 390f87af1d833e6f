"""The audit log: who did what, and who tried in vain."""

from datetime import timedelta

from sqlalchemy import delete, select
from structlog.contextvars import get_contextvars

from refract.core.db import ReadSession, WriteSession
from refract.core.page import Cursors, Page, after
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from refract.identity.payloads import LogRevocations
from refract.identity.revocation_log import REVOKING_ACTIONS
from refract.jobs.queue import enqueue


async def note(
    session: WriteSession, rt: Runtime, action: str, *, actor: User | None = None, target: str | None = None, detail: str | None = None
) -> None:
    """Add a line, in the transaction of what it tells of. Callers pass ids and words, never a secret."""
    session.add(
        AuditEntry(
            id=rt.ids.next_id(),
            at=rt.clock.now(),
            actor_id=actor.id if actor else None,
            action=action,
            target=target[:200] if target else None,
            detail=detail,
            request_id=get_contextvars().get("request_id"),
        )
    )
    if action in REVOKING_ACTIONS:
        await enqueue(session, rt, LogRevocations())


async def read_log(session: ReadSession, cursors: Cursors, *, limit: int, cursor: str | None) -> Page[AuditEntry]:
    """Newest first."""
    question = ["audit"]
    wanted = select(AuditEntry).order_by(AuditEntry.at.desc(), AuditEntry.id.desc()).limit(limit + 1)
    if cursor:
        wanted = wanted.where(after([AuditEntry.at, AuditEntry.id], cursors.read(question, cursor), descending=True))
    return cursors.page(question, list(await session.scalars(wanted)), limit, lambda row: (row.at, row.id))


async def forget_old(session: WriteSession, rt: Runtime) -> None:
    await session.execute(delete(AuditEntry).where(AuditEntry.at < rt.clock.now() - timedelta(days=rt.settings.audit_days)))
