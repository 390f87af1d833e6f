"""Domains that an administrator has blocked: their links stop at once, and no new one is made."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import CursorResult, Insert, delete, select, update

from refract.core.db import ReadSession, WriteSession
from refract.core.page import Cursors, Page, after
from refract.core.settings import Dialect
from refract.core.urls import parent_domains
from refract.identity import audit
from refract.links import feed
from refract.links.blocklist import Domains, canonical_domain
from refract.links.safety_errors import DomainNotBlocked, InvalidDomain
from refract.links.safety_models import BlockedDomain, BlockEpoch
from refract.links.safety_queries import replacing

_ROW = 1
_ALL = feed.Change(feed.EVERYTHING, 0, ())
_AT_ONCE = 500


async def block_domain(session: WriteSession, domain: str, *, reason: str, by: int | None, at: datetime) -> BlockedDomain:
    """Block a domain and everything below it; blocking it again replaces the reason."""
    name = canonical_domain(domain)
    if name is None:
        raise InvalidDomain(domain=domain[:100])
    await bump_epoch(session)  # first: its row lock lets two administrators pass one after the other
    found = await session.get(BlockedDomain, name)
    if found is None:
        found = BlockedDomain(domain=name)
        session.add(found)
    found.reason, found.blocked_by, found.blocked_at = reason, by, at
    audit.record(session, "domain.blocked", at=at, actor_id=by, target=name)
    await session.flush()
    await feed.changed(session, [_ALL])
    return found


async def unblock_domain(session: WriteSession, domain: str, *, by: int | None, at: datetime) -> None:
    """Let links to a domain work again, unless one above it is blocked as well."""
    name = canonical_domain(domain)
    await bump_epoch(session)
    gone = await session.execute(delete(BlockedDomain).where(BlockedDomain.domain == name)) if name else None
    if not isinstance(gone, CursorResult) or not gone.rowcount:
        raise DomainNotBlocked(domain=domain[:100])
    audit.record(session, "domain.unblocked", at=at, actor_id=by, target=name)
    await feed.changed(session, [_ALL])


async def list_blocked(session: ReadSession, cursors: Cursors, *, limit: int, cursor: str | None) -> Page[BlockedDomain]:
    """The newest first."""
    question = ["blocked-domains"]
    wanted = select(BlockedDomain).order_by(BlockedDomain.blocked_at.desc(), BlockedDomain.domain.desc()).limit(limit + 1)
    if cursor:
        wanted = wanted.where(after([BlockedDomain.blocked_at, BlockedDomain.domain], cursors.read(question, cursor), descending=True))
    return cursors.page(question, list(await session.scalars(wanted)), limit, lambda row: (row.blocked_at, row.domain))


async def blocked_among(session: ReadSession, hosts: Iterable[str]) -> Domains:
    """Of the domains that cover these hosts, the ones that are blocked."""
    wanted = sorted({domain for host in hosts for domain in parent_domains(host)})
    found: set[str] = set()
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        found.update(await session.scalars(select(BlockedDomain.domain).where(BlockedDomain.domain.in_(some))))
    return Domains(frozenset(found))


async def epoch(session: ReadSession) -> int:
    """Grows with every change; whoever keeps a copy of the list compares this first."""
    return await session.scalar(select(BlockEpoch.epoch).where(BlockEpoch.id == _ROW)) or 0


class Blocked:
    """All blocked domains in memory, as of an epoch."""

    def __init__(self) -> None:
        self._epoch = 0
        self._domains = Domains()

    def knows(self, epoch: int) -> bool:
        return epoch == self._epoch

    def match(self, host: str) -> str | None:
        return self._domains.match(host)

    async def load(self, session: ReadSession) -> None:
        """Read the epoch before the list: a change in between is then loaded again, never missed."""
        seen = await epoch(session)
        self._domains = Domains(frozenset(await session.scalars(select(BlockedDomain.domain))))
        self._epoch = seen


async def forget_everything(session: WriteSession) -> None:
    """Have every cache, in every process, ask again where each link leads: for changes that concern any number of them.

    The epoch is part of every entry that processes share, so one written before the change is not believed after it.
    """
    await bump_epoch(session)
    await feed.changed(session, [_ALL])


async def bump_epoch(session: WriteSession) -> None:
    await (await session.connection()).execute(_first_epoch(session.dialect))
    await session.execute(update(BlockEpoch).where(BlockEpoch.id == _ROW).values(epoch=BlockEpoch.epoch + 1))


def _first_epoch(dialect: Dialect) -> Insert:
    """Two administrators may be the first at the same moment: the row is made by whoever comes first, and waited for by the other."""
    return replacing(dialect, BlockEpoch, ["id"]).values(id=_ROW, epoch=0)
