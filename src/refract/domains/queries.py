"""Domains, who may use them, and what is on them.

A host that is None, empty or the default domain's own always means the default domain, which has
no row: `find_domain` returns None for it, and names on it are stored without a host.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, String, and_, bindparam, column, func, or_, select, table

from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession, WriteSession
from refract.core.urls import normalize_host
from refract.domains.errors import DomainDisabled, DomainNotAllowed, DomainNotFound
from refract.domains.models import Domain, DomainCreators, DomainState
from refract.teams.models import TeamMember

_LINKS = table("links", column("domain", String))
_LISTS = table("lists", column("domain", String))
_NAMES = table("names", column("key", String))
"""Tables of features above. Their rows name the domain by its host."""


@dataclass(frozen=True, slots=True)
class DomainCaller:
    """A signed-in user, and whether this request has an administrator's rights."""

    user_id: int
    is_admin: bool = False


async def list_domains(session: ReadSession) -> Sequence[Domain]:
    """Return all domains by host, active or not."""
    return [row[0] for row in await session.fetch(_ALL)]


_ALL = PreparedSelect(lambda: select(Domain).order_by(Domain.host))


async def list_usable_domains(session: ReadSession, caller: DomainCaller) -> Sequence[Domain]:
    """Return the active domains on which a user may create links and lists, by host."""
    query = select(Domain).where(Domain.state == DomainState.ACTIVE)
    if not caller.is_admin:
        query = query.where(_is_usable_by(caller.user_id))
    return list(await session.scalars(query.order_by(Domain.host)))


async def find_domain(session: ReadSession, host: str) -> Domain | None:
    """Return the domain with a host in any spelling, or None."""
    found = await session.fetch(_BY_HOST, host=normalize_host(host))
    return found[0][0] if found else None


_BY_HOST = PreparedSelect(lambda: select(Domain).where(Domain.host == bindparam("host")))


async def load_domain(session: ReadSession, host: str) -> Domain:
    """Return the domain with a host. Raises `DomainNotFound`."""
    found = await find_domain(session, host)
    if found is None:
        raise DomainNotFound(host=host)
    return found


async def lock_usable_domain(session: WriteSession, caller: DomainCaller, host: str) -> Domain:
    """Return a domain on which the caller may create something, locked against its deletion.

    Raises `DomainNotFound`, `DomainDisabled` or `DomainNotAllowed`.
    """
    query = select(Domain).where(Domain.host == normalize_host(host)).with_for_update(read=True)
    domain = (await session.scalars(query)).one_or_none()
    if domain is None:
        raise DomainNotFound(host=host)
    if not domain.is_active:
        raise DomainDisabled(host=domain.host)
    if not caller.is_admin and not await _may_use(session, domain, caller.user_id):
        raise DomainNotAllowed(host=domain.host)
    return domain


async def count_contents(session: ReadSession, host: str) -> int:
    """Return how many links and lists live on a domain, or have a name there."""
    begin = f"/{host}/"  # as in `names.grammar.name_key`
    within = and_(_NAMES.c.key >= begin, _NAMES.c.key < begin + "~")
    named = select(func.count()).select_from(_NAMES).where(within).scalar_subquery()
    links = select(func.count()).select_from(_LINKS).where(_LINKS.c.domain == host)
    lists = select(func.count()).select_from(_LISTS).where(_LISTS.c.domain == host)
    counts = select(named, links.scalar_subquery(), lists.scalar_subquery())
    names, links_there, lists_there = (await session.execute(counts)).one()
    return max(int(names), int(links_there) + int(lists_there))


def _is_usable_by(user_id: int) -> ColumnElement[bool]:
    teams = select(TeamMember.team_id).where(TeamMember.user_id == user_id)
    return or_(
        Domain.creators == DomainCreators.EVERYONE,
        and_(Domain.creators == DomainCreators.TEAM, Domain.team_id.in_(teams)),
    )


async def _may_use(session: ReadSession, domain: Domain, user_id: int) -> bool:
    query = select(func.count()).select_from(Domain).where(Domain.id == domain.id)
    return bool(await session.scalar(query.where(_is_usable_by(user_id))))
