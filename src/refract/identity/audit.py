"""The audit log: actions and refused attempts."""

from datetime import datetime, timedelta

from sqlalchemy import delete, select
from structlog.contextvars import get_contextvars

from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.runtime import Runtime
from refract.identity.models import AuditEntry, User
from refract.identity.payloads import LogRevocations
from refract.identity.revocation_log import REVOKING_ACTIONS
from refract.jobs.models import MAINTENANCE_SHARE
from refract.jobs.queue import enqueue

ENTRY_POINT_KEY = "door"
"""The key of the logging context that names the entry point, set by the command line."""

API_KEY_KEY = "api_key"
"""The key of the logging context that names the API key of a request by its visible part."""


def add_entry(
    session: WriteSession,
    action: str,
    *,
    at: datetime,
    actor_id: int | None = None,
    target: object = None,
    detail: str | None = None,
) -> None:
    """Add an entry in the transaction of the change. Callers pass ids and words, never a secret.

    Without a request, the entry point takes the place of the request id.
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
            request_id=context.get("request_id") or context.get(ENTRY_POINT_KEY),
            key_prefix=context.get(API_KEY_KEY),
        )
    )


async def record_event(
    session: WriteSession,
    rt: Runtime,
    action: str,
    *,
    actor: User | None = None,
    target: str | None = None,
    detail: str | None = None,
) -> None:
    """Add an entry at the current time; a revoking action also updates the revocation log."""
    add_entry(
        session,
        action,
        at=rt.clock.now(),
        actor_id=actor.id if actor else None,
        target=target,
        detail=detail,
    )
    if action in REVOKING_ACTIONS:
        await update_revocation_log(session, rt)


async def update_revocation_log(session: WriteSession, rt: Runtime) -> None:
    """Update the revocation log after this transaction."""
    await enqueue(session, rt, LogRevocations(), share=MAINTENANCE_SHARE)


async def record_export(rt: Runtime, what: str, *, by: int | None, target: object = None) -> None:
    """Add an entry in a transaction of its own, before an export of personal data starts."""
    async with rt.db.write() as session:
        add_entry(session, f"{what}.exported", at=rt.clock.now(), actor_id=by, target=target)


async def list_entries(
    session: ReadSession,
    cursors: CursorCodec,
    *,
    limit: int,
    cursor: str | None,
    actor_id: int | None = None,
    action: str | None = None,
) -> Page[AuditEntry]:
    """Return a page of entries, newest first: all of them, or those of an actor or an action."""
    cursor_scope = ["audit", *([actor_id, action] if actor_id or action else [])]
    query = select(AuditEntry).order_by(AuditEntry.at.desc(), AuditEntry.id.desc()).limit(limit + 1)
    if actor_id is not None:
        query = query.where(AuditEntry.actor_id == actor_id)
    if action:
        query = query.where(AuditEntry.action == action)
    if cursor:
        query = query.where(
            build_after_clause(
                [AuditEntry.at, AuditEntry.id],
                cursors.decode(cursor_scope, cursor),
                descending=True,
            )
        )
    return cursors.build_page(
        cursor_scope, list(await session.scalars(query)), limit, lambda row: (row.at, row.id)
    )


async def delete_old_entries(session: WriteSession, rt: Runtime) -> None:
    await session.execute(
        delete(AuditEntry).where(
            AuditEntry.at < rt.clock.now() - timedelta(days=rt.settings.audit_days)
        )
    )
