"""What is remembered of checks, and forgotten in time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import CursorResult, Insert, delete, select
from sqlalchemy.dialects import mysql, postgresql, sqlite

from refract.core.db import ReadSession, WriteSession
from refract.core.secrets import digest
from refract.core.settings import Dialect
from refract.links.safety_models import UrlCheck, Verdict

SAFE_FOR = timedelta(hours=24)
BAD_FOR = timedelta(days=7)
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of an address. `threat` is the service's word for the danger."""

    verdict: Verdict
    threat: str | None = None


async def remembered(session: ReadSession, hrefs: Iterable[str], now: datetime) -> dict[str, Finding]:
    """What earlier checks said of these addresses, as far as it still holds."""
    by_hash = {digest(href): href for href in hrefs}
    hashes = sorted(by_hash)
    known: dict[str, Finding] = {}
    for start in range(0, len(hashes), _AT_ONCE):
        some = hashes[start : start + _AT_ONCE]
        rows = await session.execute(
            select(UrlCheck.url_hash, UrlCheck.verdict, UrlCheck.threat).where(UrlCheck.url_hash.in_(some), UrlCheck.expires_at > now)
        )
        known |= {by_hash[url_hash]: Finding(Verdict(verdict), threat) for url_hash, verdict, threat in rows}
    return known


async def remember(session: WriteSession, findings: Mapping[str, Finding], now: datetime) -> None:
    """Keep what a check said. Rows go in by key order, so that two callers never wait for each other."""
    rows = [
        {
            "url_hash": digest(href),
            "verdict": found.verdict.value,
            "threat": found.threat[:60] if found.threat else None,
            "expires_at": now + (SAFE_FOR if found.verdict is Verdict.SAFE else BAD_FOR),
        }
        for href, found in findings.items()
    ]
    if rows:
        rows.sort(key=lambda row: str(row["url_hash"]))
        connection = await session.connection()
        await connection.execute(replacing(session.dialect, UrlCheck, ["verdict", "threat", "expires_at"]), rows)


async def forget_old_checks(session: WriteSession, now: datetime, *, most: int = 1000) -> int:
    """Remove a slice of what no longer holds; the answer is how many rows went."""
    old = list(await session.scalars(select(UrlCheck.url_hash).where(UrlCheck.expires_at <= now).order_by(UrlCheck.expires_at).limit(most)))
    gone = await session.execute(delete(UrlCheck).where(UrlCheck.url_hash.in_(old))) if old else None
    return gone.rowcount if isinstance(gone, CursorResult) else 0


def replacing(dialect: Dialect, model: type[Any], columns: list[str]) -> Insert:
    """An insert that overwrites these columns where the primary key is taken."""
    table = model.__table__
    if dialect == "mysql":
        added = mysql.insert(table)
        return added.on_duplicate_key_update({name: added.inserted[name] for name in columns})
    insert = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    return insert.on_conflict_do_update(index_elements=list(table.primary_key), set_={name: insert.excluded[name] for name in columns})
