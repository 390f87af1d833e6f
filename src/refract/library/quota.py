"""The assistant's budget per person and UTC day. The counter decides; the ledger explains it, and is only ever added to."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import cast

from sqlalchemy import Table, func, select, update

from refract.core.db import ReadSession, WriteSession
from refract.core.rows import insert_or_skip
from refract.core.runtime import Runtime
from refract.core.settings import Settings
from refract.identity.models import Plan, User
from refract.jobs.queue import changed, insert_new
from refract.library.quota_models import EntryKind, LedgerEntry, QuotaDay

ACTION = "ENRICH_ITEM"


@dataclass(frozen=True, slots=True)
class Standing:
    """How much of today's budget is left."""

    limit: int
    used: int
    resets_at: datetime

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def headers(self) -> dict[str, str]:
        """The reset as seconds since 1970, as rate limits have it."""
        reset = str(int(self.resets_at.timestamp()))
        return {"X-AI-Quota-Limit": str(self.limit), "X-AI-Quota-Remaining": str(self.remaining), "X-AI-Quota-Reset": reset}


def plan_limit(settings: Settings, user: User) -> int:
    return settings.quota_pro if user.plan == Plan.PRO else settings.quota_free


async def standing(session: ReadSession, rt: Runtime, user: User) -> Standing:
    today = rt.clock.now().astimezone(UTC).date()
    asked = select(QuotaDay.used, QuotaDay.limit_override).where(QuotaDay.user_id == user.id, QuotaDay.day == today)
    row = (await session.execute(asked)).one_or_none()
    limit = plan_limit(rt.settings, user) if row is None or row.limit_override is None else row.limit_override
    resets_at = datetime.combine(today, time(), UTC) + timedelta(days=1)
    return Standing(limit, row.used if row else 0, resets_at)


async def charge(session: WriteSession, rt: Runtime, user: User, *, item_id: int, job_id: int) -> bool:
    """Pay for one description; False when today's budget is used up. The row of the day is where parallel requests queue up."""
    now = rt.clock.now()
    today = now.astimezone(UTC).date()
    await _ensure_day(session, user.id, today, now)
    allowed = func.coalesce(QuotaDay.limit_override, plan_limit(rt.settings, user))
    paying = update(QuotaDay).where(QuotaDay.user_id == user.id, QuotaDay.day == today, QuotaDay.used < allowed)
    paid = await session.execute(paying.values(used=QuotaDay.used + 1, updated_at=now).execution_options(synchronize_session=False))
    if changed(paid) != 1:
        return False
    model = (rt.settings.model_name or "")[:100]
    session.add(_entry(rt, EntryKind.CHARGE, user.id, today, job_id=job_id, item_id=item_id, model=model, reason=None))
    return True


async def refund(session: WriteSession, rt: Runtime, job_id: int, reason: str) -> bool:
    """Give back what a job was charged, once; False when there was no charge or it is back already."""
    paid = await session.scalar(select(LedgerEntry).where(LedgerEntry.job_id == job_id, LedgerEntry.kind == EntryKind.CHARGE))
    if paid is None:
        return False
    back = _entry(rt, EntryKind.REFUND, paid.user_id, paid.day, job_id=job_id, item_id=paid.item_id, model=paid.model, reason=reason[:50])
    row = {column.name: getattr(back, column.name) for column in cast("Table", LedgerEntry.__table__).columns}
    if not await insert_new(session, LedgerEntry, row):
        return False
    less = update(QuotaDay).where(QuotaDay.user_id == paid.user_id, QuotaDay.day == paid.day)
    given_back = less.values(used=QuotaDay.used - paid.units, updated_at=rt.clock.now())
    await session.execute(given_back.execution_options(synchronize_session=False))
    return True


async def set_limit(session: WriteSession, rt: Runtime, user_id: int, day: date, limit: int | None) -> None:
    """Give a person another limit for one day, or their plan's again."""
    now = rt.clock.now()
    await _ensure_day(session, user_id, day, now)
    other = update(QuotaDay).where(QuotaDay.user_id == user_id, QuotaDay.day == day).values(limit_override=limit, updated_at=now)
    await session.execute(other.execution_options(synchronize_session=False))


async def _ensure_day(session: WriteSession, user_id: int, day: date, now: datetime) -> None:
    row = {"user_id": user_id, "day": day, "used": 0, "limit_override": None, "updated_at": now}
    await insert_or_skip(session, cast("Table", QuotaDay.__table__), [row])


def _entry(  # noqa: PLR0913 - the columns of a row
    rt: Runtime, kind: EntryKind, user_id: int, day: date, *, job_id: int, item_id: int, model: str, reason: str | None
) -> LedgerEntry:
    return LedgerEntry(
        id=rt.ids.next_id(), user_id=user_id, day=day, kind=kind.value, action=ACTION, job_id=job_id, item_id=item_id, units=1, model=model,
        reason=reason, created_at=rt.clock.now(),
    )  # fmt: skip
