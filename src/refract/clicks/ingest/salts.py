"""Daily salts of visitor hashes. A destroyed salt makes its hashes unattributable."""

import secrets
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import delete, select, update

from refract.clicks.models import VisitorSalt
from refract.clicks.rollups.granularity import to_datetime
from refract.core.db.upsert import insert_if_absent
from refract.core.runtime import Runtime

SALT_LIFETIME: Final = timedelta(hours=48)
SALT_BYTES: Final = 32


class KnownSalt(NamedTuple):
    """A salt that is in the database."""

    salt: bytes
    created_at: datetime


class SaltStore:
    """The salts that this process has loaded, forgotten when they are due to be destroyed."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._known: dict[int, KnownSalt] = {}

    async def get_salts(self, days: set[int]) -> dict[int, bytes]:
        """Return the salt of each UTC day. The first process creates it for all.

        Clicks that arrive after their day's salt was destroyed get a new one, which tells them
        apart among themselves.
        """
        oldest = self._rt.clock.now() - SALT_LIFETIME
        self._known = {day: salt for day, salt in self._known.items() if salt.created_at > oldest}
        if missing := days - self._known.keys():
            await self._load_salts(missing)
        return {day: self._known[day].salt for day in days}

    async def _load_salts(self, days: set[int]) -> None:
        now = self._rt.clock.now()
        async with self._rt.db.write() as session:
            fresh = [
                {
                    "day": to_datetime(day),
                    "salt": secrets.token_bytes(SALT_BYTES),
                    "created_at": now,
                }
                for day in sorted(days)
            ]
            expired = (
                VisitorSalt.day.in_([to_datetime(day) for day in days]),
                VisitorSalt.created_at <= now - SALT_LIFETIME,
            )
            await session.execute(
                delete(VisitorSalt).where(*expired).execution_options(synchronize_session=False)
            )
            await insert_if_absent(session, VisitorSalt, fresh)
            found = await session.scalars(
                select(VisitorSalt).where(VisitorSalt.day.in_([to_datetime(day) for day in days]))
            )
            loaded = {
                int(row.day.timestamp()): KnownSalt(row.salt, row.created_at) for row in found.all()
            }
        self._known |= loaded  # only once they are committed: on a full disk they are not


async def destroy_expired_salts(rt: Runtime) -> int:
    """Destroy the salts that are 48 hours old; return how many there were.

    They are overwritten before they are deleted, since a deleted row may stay readable in a
    database file for a long time.
    """
    old = VisitorSalt.created_at <= rt.clock.now() - SALT_LIFETIME
    async with rt.db.read() as session:
        days = (await session.scalars(select(VisitorSalt.day).where(old))).all()
    if days:
        async with rt.db.write() as session:
            same = (
                VisitorSalt.day.in_(days),
                VisitorSalt.created_at <= rt.clock.now() - SALT_LIFETIME,
            )
            blank = update(VisitorSalt).where(*same).values(salt=bytes(SALT_BYTES))
            await session.execute(blank.execution_options(synchronize_session=False))
            await session.execute(
                delete(VisitorSalt).where(*same).execution_options(synchronize_session=False)
            )
    return len(days)
