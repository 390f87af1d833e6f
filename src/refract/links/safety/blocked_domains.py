"""Domains that an administrator has blocked. Links to them stop, and new ones are rejected."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    BindParameter,
    Integer,
    Select,
    bindparam,
    delete,
    literal_column,
    select,
    union_all,
    update,
)

from refract.core.db.bulk import get_rowcount
from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession, WriteSession
from refract.core.db.upsert import insert_if_absent
from refract.core.runtime import Runtime
from refract.core.urls import list_parent_domains
from refract.domains.models import Domain
from refract.identity import audit
from refract.links import feed
from refract.links.changes import ALL_TARGETS, TargetChange
from refract.links.safety.blocklist import BlockedDomainSnapshot, DomainSet, canonicalise_domain
from refract.links.safety.errors import DomainNotBlocked, InvalidDomain
from refract.links.safety.models import BlockedDomain, BlockEpoch

_EPOCH_ROW_ID = 1
_ALL_CHANGED = TargetChange(ALL_TARGETS, 0, ())
_BATCH_SIZE = 500


async def block_domain(
    session: WriteSession, domain: str, *, reason: str, by: int | None, at: datetime
) -> BlockedDomain:
    """Block a domain and its subdomains. Blocking it again replaces the reason."""
    name = canonicalise_domain(domain)
    if name is None:
        raise InvalidDomain(domain=domain[:100])
    await bump_epoch(session)  # first, because its row lock serialises administrators
    found = await session.get(BlockedDomain, name)
    if found is None:
        found = BlockedDomain(domain=name)
        session.add(found)
    found.reason, found.blocked_by, found.blocked_at = reason, by, at
    audit.add_entry(session, "domain.blocked", at=at, actor_id=by, target=name)
    await session.flush()
    await feed.publish_changes(session, [_ALL_CHANGED])
    return found


async def unblock_domain(
    session: WriteSession, domain: str, *, by: int | None, at: datetime
) -> None:
    """Unblock a domain. Its links work again, unless a parent domain is blocked too."""
    name = canonicalise_domain(domain)
    await bump_epoch(session)
    deleted = (
        await session.execute(delete(BlockedDomain).where(BlockedDomain.domain == name))
        if name
        else None
    )
    if deleted is None or not get_rowcount(deleted):
        raise DomainNotBlocked(domain=domain[:100])
    audit.add_entry(session, "domain.unblocked", at=at, actor_id=by, target=name)
    await feed.publish_changes(session, [_ALL_CHANGED])


async def list_blocked_domains(
    session: ReadSession, limit: int | None = None
) -> Sequence[BlockedDomain]:
    """Return the blocked domains by name, at most `limit` of them."""
    ordered = select(BlockedDomain).order_by(BlockedDomain.domain).limit(limit)
    return (await session.scalars(ordered)).all()


class RefusedHosts(NamedTuple):
    """Domains to which new links may not lead: blocked ones, and those of this installation."""

    blocked: DomainSet
    own: frozenset[str]


async def find_refused_hosts(session: ReadSession, hosts: Iterable[str]) -> RefusedHosts:
    """Return what these hosts are that no link may lead to. One query for up to 500 domains."""
    domains = sorted({domain for host in hosts for domain in list_parent_domains(host)})
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for start in range(0, len(domains), _BATCH_SIZE):
        batch = domains[start : start + _BATCH_SIZE]
        for domain, is_own in await session.fetch(_REFUSED_HOSTS, domains=batch):
            found[bool(is_own)].add(domain)
    return RefusedHosts(DomainSet(frozenset(found[False])), frozenset(found[True]))


def _select_refused_hosts() -> Select[str, int]:
    domains: BindParameter[str] = bindparam("domains", expanding=True)
    blocked = select(
        BlockedDomain.domain.label("host"), literal_column("0", Integer).label("is_own")
    ).where(BlockedDomain.domain.in_(domains))
    own = select(Domain.host, literal_column("1", Integer)).where(Domain.host.in_(domains))
    found = union_all(blocked, own).subquery()
    return select(found.c.host, found.c.is_own)


_REFUSED_HOSTS = PreparedSelect(_select_refused_hosts)


async def read_epoch(session: ReadSession) -> int:
    """Return a number that grows with every change. Copies of the list compare it first."""
    return await session.scalar(select(BlockEpoch.epoch).where(BlockEpoch.id == _EPOCH_ROW_ID)) or 0


async def load_snapshot(session: ReadSession) -> BlockedDomainSnapshot:
    """Load the list. The epoch is read first, so that a change in between is loaded again."""
    epoch = await read_epoch(session)
    return BlockedDomainSnapshot(epoch, await session.scalars(select(BlockedDomain.domain)))


async def invalidate_all(session: WriteSession) -> None:
    """Invalidate all caches in all processes, for changes that affect any number of links.

    The epoch is part of every shared entry, so entries from before the change are ignored.
    """
    await bump_epoch(session)
    await feed.publish_changes(session, [_ALL_CHANGED])


async def bump_epoch(session: WriteSession) -> None:
    # Of two concurrent first administrators, the second waits for the row.
    await insert_if_absent(session, BlockEpoch, [{"id": _EPOCH_ROW_ID, "epoch": 0}])
    await session.execute(
        update(BlockEpoch).where(BlockEpoch.id == _EPOCH_ROW_ID).values(epoch=BlockEpoch.epoch + 1)
    )


# A copy in memory for lists, reloaded when it has changed.


class BlockedDomainCache:
    """The blocked domains of this process.

    Callers pass the epoch that they read together with their data, so a stale copy is never
    used.
    """

    def __init__(self, _rt: Runtime) -> None:
        self._snapshot = BlockedDomainSnapshot()

    async def load_at(self, session: ReadSession, epoch: int) -> BlockedDomainSnapshot:
        if not self._snapshot.is_current(epoch):
            self._snapshot = await load_snapshot(session)
        return self._snapshot

    async def load_current(self, session: ReadSession) -> BlockedDomainSnapshot:
        return await self.load_at(session, await read_epoch(session))
