"""Tombstones of deleted accounts: no new sign-up until an administrator allows it.

A tombstone holds a digest of (issuer, subject), keyed by the installation's secret, and nothing
else about the person.
"""

from collections.abc import Iterable

from sqlalchemy import delete, func, select

from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec, Page, build_after_clause
from refract.core.runtime import Runtime
from refract.identity.errors import AccountBarred, BarredAccountNotFound
from refract.identity.models import LOCAL_ISSUER, AccountTombstone, User

REFERENCE_LENGTH = 12


def get_reference(tombstone: AccountTombstone) -> str:
    """Return the reference that the sign-in page shows and administrators search for."""
    return tombstone.digest[:REFERENCE_LENGTH]


async def add_tombstone(session: WriteSession, rt: Runtime, user: User) -> None:
    """Bar the provider's account of a user. Local accounts are created by the operator only."""
    if user.issuer == LOCAL_ISSUER:
        return
    await bar_digest(session, rt, user.id, _compute_digest(rt, user.issuer, user.subject))


async def bar_digest(session: WriteSession, rt: Runtime, user_id: int, digest: str) -> None:
    """Add a tombstone with this digest unless there is one."""
    if await _find_by_digest(session, digest) is None:
        session.add(
            AccountTombstone(
                id=rt.ids.next_id(), digest=digest, user_id=user_id, created_at=rt.clock.now()
            )
        )
        await session.flush()


async def lift_bans(session: WriteSession, user_ids: Iterable[int]) -> None:
    """Remove the tombstones of these accounts."""
    await session.execute(delete(AccountTombstone).where(AccountTombstone.user_id.in_(user_ids)))


async def count_tombstones(session: ReadSession) -> int:
    """Return the number of tombstones."""
    return await session.scalar(select(func.count()).select_from(AccountTombstone)) or 0


async def check_not_barred(session: ReadSession, rt: Runtime, issuer: str, subject: str) -> None:
    """Raise `AccountBarred` if there is a tombstone of (issuer, subject)."""
    tombstone = await _find_by_digest(session, _compute_digest(rt, issuer, subject))
    if tombstone is not None:
        raise AccountBarred(reference=get_reference(tombstone))


async def list_tombstones(
    session: ReadSession, cursors: CursorCodec, *, limit: int, cursor: str | None
) -> Page[AccountTombstone]:
    """Return a page of tombstones, newest first."""
    cursor_scope = ["barred"]
    query = select(AccountTombstone).order_by(AccountTombstone.id.desc()).limit(limit + 1)
    if cursor:
        query = query.where(
            build_after_clause(
                [AccountTombstone.id], cursors.decode(cursor_scope, cursor), descending=True
            )
        )
    return cursors.build_page(
        cursor_scope, list(await session.scalars(query)), limit, lambda row: (row.id,)
    )


async def find_by_reference(session: ReadSession, reference: str) -> AccountTombstone:
    """Return the tombstone with this id or digest prefix. Raises `BarredAccountNotFound`."""
    if (
        reference.isdecimal()
        and (found := await session.get(AccountTombstone, int(reference))) is not None
    ):
        return found
    matching = AccountTombstone.digest.startswith(reference, autoescape=True)
    rows = (
        list(await session.scalars(select(AccountTombstone).where(matching).limit(2)))
        if len(reference) >= REFERENCE_LENGTH
        else []
    )
    if len(rows) != 1:
        raise BarredAccountNotFound
    return rows[0]


async def remove_tombstone(session: WriteSession, tombstone_id: int) -> AccountTombstone:
    """Delete a tombstone, which allows a new sign-up. Raises `BarredAccountNotFound`."""
    tombstone = await session.get(AccountTombstone, tombstone_id, with_for_update=True)
    if tombstone is None:
        raise BarredAccountNotFound
    await session.delete(tombstone)
    await session.flush()
    return tombstone


def _compute_digest(rt: Runtime, issuer: str, subject: str) -> str:
    return rt.secret.sign("tombstone", f"{issuer}\n{subject}".encode(), size=32).hex()


async def _find_by_digest(session: ReadSession, digest: str) -> AccountTombstone | None:
    return await session.scalar(select(AccountTombstone).where(AccountTombstone.digest == digest))
