"""Stored results of checks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from refract.core.db.bulk import get_rowcount
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import upsert
from refract.core.secrets import hash_credential
from refract.links.safety.models import UrlCheck, UrlVerdict

SAFE_TTL = timedelta(hours=24)
BAD_TTL = timedelta(days=7)
_BATCH_SIZE = 500


@dataclass(frozen=True, slots=True)
class UrlFinding:
    """The result for a URL. `threat` is the service's name for the danger."""

    verdict: UrlVerdict
    threat: str | None = None


async def find_checks(
    session: ReadSession, hrefs: Iterable[str], now: datetime
) -> dict[str, UrlFinding]:
    """Return the results for these URLs that have not expired."""
    by_hash = {hash_credential(href): href for href in hrefs}
    hashes = sorted(by_hash)
    known: dict[str, UrlFinding] = {}
    for start in range(0, len(hashes), _BATCH_SIZE):
        batch = hashes[start : start + _BATCH_SIZE]
        rows = await session.execute(
            select(UrlCheck.url_hash, UrlCheck.verdict, UrlCheck.threat).where(
                UrlCheck.url_hash.in_(batch), UrlCheck.expires_at > now
            )
        )
        known |= {
            by_hash[url_hash]: UrlFinding(UrlVerdict(verdict), threat)
            for url_hash, verdict, threat in rows
        }
    return known


async def store_checks(
    session: WriteSession, findings: Mapping[str, UrlFinding], now: datetime
) -> None:
    """Store results, in the order of their keys, so that two callers cannot deadlock."""
    rows = [
        {
            "url_hash": hash_credential(href),
            "verdict": found.verdict.value,
            "threat": found.threat[:60] if found.threat else None,
            "expires_at": now + (SAFE_TTL if found.verdict is UrlVerdict.SAFE else BAD_TTL),
        }
        for href, found in findings.items()
    ]
    rows.sort(key=lambda row: str(row["url_hash"]))
    await upsert(session, UrlCheck, rows, ["verdict", "threat", "expires_at"])


async def purge_expired_checks(session: WriteSession, now: datetime, *, limit: int = 1000) -> int:
    """Delete a batch of expired results; return how many there were."""
    old = list(
        await session.scalars(
            select(UrlCheck.url_hash)
            .where(UrlCheck.expires_at <= now)
            .order_by(UrlCheck.expires_at)
            .limit(limit)
        )
    )
    deleted = (
        await session.execute(delete(UrlCheck).where(UrlCheck.url_hash.in_(old))) if old else None
    )
    return get_rowcount(deleted) if deleted is not None else 0
