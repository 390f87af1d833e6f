"""Domains, who may use them, and what is on them.

A host that is None, empty or the default domain's own always means the default domain, which has
no row: `find_domain` returns None for it, and names on it are stored without a host.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Row,
    Select,
    String,
    TableClause,
    and_,
    bindparam,
    column,
    func,
    or_,
    select,
    table,
)

from refract.core.db.prepared import PreparedSelect
from refract.core.db.session import ReadSession, WriteSession
from refract.core.pagination import CursorCodec, Page
from refract.core.urls import normalize_host
from refract.domains.errors import DomainDisabled, DomainNotAllowed, DomainNotFound
from refract.domains.hosts import build_domain_url
from refract.domains.models import Domain, DomainCreators, DomainState
from refract.domains.schemas import DomainOut
from refract.teams.models import Team, TeamMember

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
    values = {} if caller.is_admin else {"user_id": caller.user_id}
    prepared = _ACTIVE if caller.is_admin else _USABLE
    return [row[0] for row in await session.fetch(prepared, **values)]


_ACTIVE = PreparedSelect(
    lambda: select(Domain).where(Domain.state == DomainState.ACTIVE).order_by(Domain.host)
)
_USABLE = PreparedSelect(lambda: _ACTIVE.statement.where(_is_usable_by(bindparam("user_id"))))


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
    begins = (f"/{host}", f"={host}")  # as in `names.grammar`: `name_key`, `join_code`
    within = or_(  # in the order of keys, 0 is next to the slash
        *(and_(_NAMES.c.key > f"{begin}/", _NAMES.c.key < f"{begin}0") for begin in begins)
    )
    named = select(func.count()).select_from(_NAMES).where(within).scalar_subquery()
    links = select(func.count()).select_from(_LINKS).where(_LINKS.c.domain == host)
    lists = select(func.count()).select_from(_LISTS).where(_LISTS.c.domain == host)
    counts = select(named, links.scalar_subquery(), lists.scalar_subquery())
    names, links_there, lists_there = (await session.execute(counts)).one()
    return max(int(names), int(links_there) + int(lists_there))


def _is_usable_by(user_id: int | BindParameter[int]) -> ColumnElement[bool]:
    teams = select(TeamMember.team_id).where(TeamMember.user_id == user_id)
    return or_(
        Domain.creators == DomainCreators.EVERYONE,
        and_(Domain.creators == DomainCreators.TEAM, Domain.team_id.in_(teams)),
    )


async def _may_use(session: ReadSession, domain: Domain, user_id: int) -> bool:
    query = select(func.count()).select_from(Domain).where(Domain.id == domain.id)
    return bool(await session.scalar(query.where(_is_usable_by(user_id))))


@dataclass(frozen=True, slots=True)
class DomainView:
    """A domain as one user sees it: with its team, and for administrators with what is on it."""

    domain: Domain
    team: str | None = None
    links: int | None = None
    lists: int | None = None

    def to_schema(self, public_url: str) -> DomainOut:
        domain = self.domain
        return DomainOut(
            host=domain.host,
            url=build_domain_url(public_url, domain.host),
            state=DomainState(domain.state),
            title=domain.title,
            root_destination=domain.root_destination,
            unknown_destination=domain.unknown_destination,
            gone_destination=domain.gone_destination,
            default_redirect_status=domain.default_redirect_status,
            creators=DomainCreators(domain.creators),
            team=self.team,
            links=self.links,
            lists=self.lists,
            created_at=domain.created_at,
            version=domain.version,
        )


async def load_domains_page(
    session: ReadSession,
    cursors: CursorCodec,
    caller: DomainCaller,
    *,
    limit: int,
    cursor: str | None,
) -> Page[DomainView]:
    """Return the domains that a user may create on, by host; for administrators all of them."""
    bound = ["domains", caller.user_id, caller.is_admin]
    query = _select_visible(caller)
    if cursor:
        query = query.where(Domain.host > cursors.decode(bound, cursor)[0])
    rows = list(await session.execute(query.order_by(Domain.host).limit(limit + 1)))
    views = await _build_views(session, caller, rows)
    return cursors.build_page(bound, views, limit, lambda view: [view.domain.host])


async def view_domain(session: ReadSession, caller: DomainCaller, host: str) -> DomainView:
    """Return a domain. Raises `DomainNotFound` for those who may not create on it."""
    query = _select_visible(caller).where(Domain.host == normalize_host(host))
    rows = list(await session.execute(query))
    if not rows:
        raise DomainNotFound(host=host[:100])
    (view,) = await _build_views(session, caller, rows)
    return view


def _select_visible(caller: DomainCaller) -> Select[Domain, str | None]:
    query = select(Domain, Team.slug).outerjoin(Team, Team.id == Domain.team_id)
    if caller.is_admin:
        return query
    return query.where(Domain.state == DomainState.ACTIVE, _is_usable_by(caller.user_id))


async def _build_views(
    session: ReadSession, caller: DomainCaller, rows: Sequence[Row[Domain, str | None]]
) -> list[DomainView]:
    if not caller.is_admin or not rows:
        return [DomainView(domain, team) for domain, team in rows]
    hosts = [domain.host for domain, _ in rows]
    links, lists = await _count_on(session, _LINKS, hosts), await _count_on(session, _LISTS, hosts)
    return [
        DomainView(domain, team, links.get(domain.host, 0), lists.get(domain.host, 0))
        for domain, team in rows
    ]


async def _count_on(
    session: ReadSession, contents: TableClause, hosts: Sequence[str]
) -> dict[str, int]:
    """Return how many rows of a table live on each domain that has any."""
    query = select(contents.c.domain, func.count()).where(contents.c.domain.in_(hosts))
    rows = await session.execute(query.group_by(contents.c.domain))
    return {str(host): int(count) for host, count in rows}
