"""The AI quota per user and UTC day.

The counter decides; the ledger explains it and is append-only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import Integer, bindparam, func, select, update

from refract.core.db.bulk import get_rowcount, get_table
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import insert_if_absent, try_insert
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity import audit
from refract.identity.errors import AccountNotFound
from refract.identity.models import User, UserPlan
from refract.library.models import Item, LedgerEntry, LedgerEntryKind, QuotaDay

LEDGER_ACTION = "ENRICH_ITEM"


@dataclass(frozen=True, slots=True)
class QuotaBalance:
    """What is left of today's quota."""

    limit: int
    used: int
    resets_at: datetime

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def headers(self) -> dict[str, str]:
        """Return the balance as headers.

        The reset is in seconds since 1970, as in those of rate limits.
        """
        reset = str(int(self.resets_at.timestamp()))
        return {
            "X-AI-Quota-Limit": str(self.limit),
            "X-AI-Quota-Remaining": str(self.remaining),
            "X-AI-Quota-Reset": reset,
        }


def _get_today(rt: Runtime) -> tuple[date, datetime]:
    """Return the current day of the quota, and when it ends."""
    today = rt.clock.now().astimezone(UTC).date()
    return today, datetime.combine(today, time(), UTC) + timedelta(days=1)


def _build_balance(
    settings: Settings, user: User, day: tuple[int, int | None], resets_at: datetime
) -> QuotaBalance:
    used, override = day
    limit = get_plan_limit(settings, user) if override is None else override
    return QuotaBalance(limit, used, resets_at)


def get_plan_limit(settings: Settings, user: User) -> int:
    return settings.quota_pro if user.plan == UserPlan.PRO else settings.quota_free


async def get_balance(session: ReadSession, rt: Runtime, user: User) -> QuotaBalance:
    return (await get_balances(session, rt, [user]))[user.id]


async def get_balances(
    session: ReadSession, rt: Runtime, users: Sequence[User]
) -> dict[int, QuotaBalance]:
    """Return today's balance of several users, by one query."""
    today, resets_at = _get_today(rt)
    user_ids = [user.id for user in users]
    rows = {
        user_id: (used, override)
        for user_id, used, override in await session.fetch(_DAYS, user_ids=user_ids, day=today)
    }
    return {
        user.id: _build_balance(rt.settings, user, rows.get(user.id, (0, None)), resets_at)
        for user in users
    }


_DAYS = PreparedSelect(
    lambda: select(QuotaDay.user_id, QuotaDay.used, QuotaDay.limit_override).where(
        QuotaDay.user_id.in_(bindparam("user_ids", expanding=True)),
        QuotaDay.day == bindparam("day"),
    )
)


async def list_todays_entries(
    session: ReadSession, rt: Runtime, user_id: int, limit: int
) -> list[tuple[LedgerEntry, str | None]]:
    """Return today's ledger entries, newest first, with the title of each item.

    The title is None if the item is gone.
    """
    today, _ = _get_today(rt)
    rows = await session.fetch(_ENTRIES, user_id=user_id, day=today, limit=limit)
    return [(entry, title) for entry, title in rows]


_ENTRIES = PreparedSelect(
    lambda: (
        select(LedgerEntry, func.coalesce(Item.title, func.substr(Item.text, 1, 60)))
        .outerjoin(Item, Item.id == LedgerEntry.item_id)
        .where(LedgerEntry.user_id == bindparam("user_id"), LedgerEntry.day == bindparam("day"))
        .order_by(LedgerEntry.id.desc())
        .limit(bindparam("limit", type_=Integer))
    )
)


async def charge_quota(
    session: WriteSession, rt: Runtime, user: User, *, item_id: int, job_id: int
) -> bool:
    """Charge one enrichment; return False if today's quota is used up.

    Parallel requests are serialised by the lock on the row of the day.
    """
    now = rt.clock.now()
    today = now.astimezone(UTC).date()
    await _ensure_day(session, user.id, today, now)
    allowed = func.coalesce(QuotaDay.limit_override, get_plan_limit(rt.settings, user))
    paying = update(QuotaDay).where(
        QuotaDay.user_id == user.id, QuotaDay.day == today, QuotaDay.used < allowed
    )
    paid = await session.execute(
        paying.values(used=QuotaDay.used + 1, updated_at=now).execution_options(
            synchronize_session=False
        )
    )
    if get_rowcount(paid) != 1:
        return False
    model = (rt.settings.model_name or "")[:100]
    session.add(
        _build_entry(
            rt,
            LedgerEntryKind.CHARGE,
            user.id,
            today,
            job_id=job_id,
            item_id=item_id,
            model=model,
            reason=None,
        )
    )
    return True


async def refund_quota(session: WriteSession, rt: Runtime, job_id: int, reason: str) -> bool:
    """Refund what a job was charged, once; return False if there is nothing (more) to refund."""
    paid = await session.scalar(
        select(LedgerEntry).where(
            LedgerEntry.job_id == job_id, LedgerEntry.kind == LedgerEntryKind.CHARGE
        )
    )
    if paid is None:
        return False
    back = _build_entry(
        rt,
        LedgerEntryKind.REFUND,
        paid.user_id,
        paid.day,
        job_id=job_id,
        item_id=paid.item_id,
        model=paid.model,
        reason=reason[:50],
    )
    row = {column.name: getattr(back, column.name) for column in get_table(LedgerEntry).columns}
    if not await try_insert(session, LedgerEntry, row):
        return False
    less = update(QuotaDay).where(QuotaDay.user_id == paid.user_id, QuotaDay.day == paid.day)
    given_back = less.values(used=QuotaDay.used - paid.units, updated_at=rt.clock.now())
    await session.execute(given_back.execution_options(synchronize_session=False))
    return True


async def override_limit(
    session: WriteSession, rt: Runtime, by: User, user_id: int, day: date, limit: int | None
) -> User:
    """Set a user's limit for one day, or reset it to their plan's, on behalf of an administrator.

    The change is recorded in the audit log.
    """
    user = await session.get(User, user_id)
    if user is None:
        raise AccountNotFound
    await set_day_limit(session, rt, user_id, day, limit)
    await audit.record_event(
        session, rt, "quota.changed", actor=by, target=str(user_id), detail=f"{day}: {limit}"
    )
    return user


async def set_day_limit(
    session: WriteSession, rt: Runtime, user_id: int, day: date, limit: int | None
) -> None:
    now = rt.clock.now()
    await _ensure_day(session, user_id, day, now)
    other = (
        update(QuotaDay)
        .where(QuotaDay.user_id == user_id, QuotaDay.day == day)
        .values(limit_override=limit, updated_at=now)
    )
    await session.execute(other.execution_options(synchronize_session=False))


async def _ensure_day(session: WriteSession, user_id: int, day: date, now: datetime) -> None:
    row = {"user_id": user_id, "day": day, "used": 0, "limit_override": None, "updated_at": now}
    await insert_if_absent(session, QuotaDay, [row])


def _build_entry(  # noqa: PLR0913 - the columns of a row
    rt: Runtime,
    kind: LedgerEntryKind,
    user_id: int,
    day: date,
    *,
    job_id: int,
    item_id: int,
    model: str,
    reason: str | None,
) -> LedgerEntry:
    return LedgerEntry(
        id=rt.ids.next_id(),
        user_id=user_id,
        day=day,
        kind=kind.value,
        action=LEDGER_ACTION,
        job_id=job_id,
        item_id=item_id,
        units=1,
        model=model,
        reason=reason,
        created_at=rt.clock.now(),
    )
