"""Changes of domains, by administrators. Every change leaves an audit entry."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from refract.core.db.session import WriteSession
from refract.core.errors import ExpectedVersions, Invalid, VersionMismatch
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.core.urls import normalize_host
from refract.domains.errors import (
    DomainExists,
    DomainNotEmpty,
    DomainNotFound,
    DomainTeamRequired,
    InvalidFallback,
)
from refract.domains.hooks import DomainHooks
from refract.domains.hosts import to_other_host
from refract.domains.models import Domain, DomainCreators, DomainState
from refract.domains.queries import count_contents
from refract.domains.schemas import FALLBACKS, DomainCreate, DomainPatch
from refract.identity import audit
from refract.teams.errors import TeamNotFound
from refract.teams.hooks import TeamHook
from refract.teams.models import Team
from refract.teams.queries import find_team_id

_PLAIN_FIELDS: Final = frozenset({"title", "default_redirect_status", *FALLBACKS})
_COMPARED_FIELDS: Final = (*sorted(_PLAIN_FIELDS), "state", "creators", "team_id")
GivenT = TypeVar("GivenT", DomainCreate, DomainPatch)


async def check_fallbacks(rt: Runtime, hooks: DomainHooks, given: GivenT) -> GivenT:
    """Return the same with checked destinations. Raises `InvalidFallback`.

    This may call other services, so no transaction may be open.
    """
    host = to_other_host(rt.settings.public_url, getattr(given, "host", None))
    checked: dict[str, str] = {}
    for name in FALLBACKS:
        if typed := getattr(given, name):
            try:
                checked[name] = await hooks.check_fallback(rt, typed)
            except Invalid as exc:
                raise InvalidFallback(field=name, reason=exc.message) from exc
            if host and urlsplit(checked[name]).hostname == host:
                raise InvalidFallback(field=name, reason=Phrase("It leads back to this domain."))
    return given.model_copy(update=checked)


async def create_domain(
    session: WriteSession,
    hooks: DomainHooks,
    actor_id: int,
    host: str,
    new: DomainCreate,
    now: datetime,
) -> Domain:
    """Create a domain. Host and destinations have been checked. Raises `DomainExists`."""
    domain = Domain(
        id=session.ids.next_id(),
        host=host,
        state=DomainState.ACTIVE.value,
        title=new.title or None,
        root_destination=new.root_destination or None,
        unknown_destination=new.unknown_destination or None,
        gone_destination=new.gone_destination or None,
        default_redirect_status=new.default_redirect_status,
        created_at=now,
        version=1,
    )
    await _set_creators(session, domain, new.creators, new.team)
    try:
        async with session.begin_nested():  # the unique key decides; checking first would race
            session.add(domain)
            await session.flush()
    except IntegrityError as exc:
        raise DomainExists(host=host) from exc
    _audit(session, "domain.created", domain, actor_id, now)
    await hooks.publish_change(session, domain.host)
    return domain


async def change_domain(
    session: WriteSession,
    hooks: DomainHooks,
    actor_id: int | None,
    host: str,
    changes: DomainPatch,
    now: datetime,
    *,
    versions: ExpectedVersions = None,
) -> Domain:
    """Change a domain. Destinations have been checked. Nothing happens if all is as before.

    `actor_id` is None for the program itself.
    """
    domain = await _lock_domain(session, host, versions)
    before = _take_snapshot(domain)
    given = changes.model_dump(exclude_unset=True)
    for name in _PLAIN_FIELDS & given.keys():
        setattr(domain, name, given[name] or None)
    if changes.state is not None:
        domain.state = changes.state.value
    if changes.creators is not None or "team" in given:
        await _set_creators(
            session, domain, changes.creators or DomainCreators(domain.creators), changes.team
        )
    changed = [name for name, value in _take_snapshot(domain).items() if before[name] != value]
    if changed:
        domain.version += 1
        await session.flush()
        _audit(session, _name_action(domain, changed), domain, actor_id, now, changed)
        await hooks.publish_change(session, domain.host)
    return domain


async def clear_fallbacks(
    session: WriteSession, hooks: DomainHooks, host: str, urls: Collection[str], now: datetime
) -> list[str]:
    """Clear the fallbacks of a domain that lead to one of these URLs; return their fields."""
    domain = await _lock_domain(session, host, None)
    names = [name for name in FALLBACKS if getattr(domain, name) in urls]
    changes = DomainPatch.model_validate(dict.fromkeys(names))
    await change_domain(session, hooks, None, host, changes, now)
    return names


async def delete_domain(
    session: WriteSession,
    hooks: DomainHooks,
    actor_id: int,
    host: str,
    now: datetime,
    *,
    versions: ExpectedVersions = None,
) -> Domain:
    """Delete a domain. Raises `DomainNotEmpty` while a link, a list or a name is on it."""
    domain = await _lock_domain(session, host, versions)
    if count := await count_contents(session, domain.host):
        raise DomainNotEmpty(host=domain.host, count=count)
    teams = update(Team).where(Team.default_domain == domain.host).values(default_domain=None)
    await session.execute(teams.execution_options(synchronize_session=False))
    await session.delete(domain)
    await session.flush()
    _audit(session, "domain.deleted", domain, actor_id, now)
    await hooks.publish_change(session, domain.host)
    return domain


async def _lock_domain(session: WriteSession, host: str, versions: ExpectedVersions) -> Domain:
    query = select(Domain).where(Domain.host == normalize_host(host)).with_for_update()
    domain = await session.scalar(query.execution_options(populate_existing=True))
    if domain is None:
        raise DomainNotFound(host=host[:100])
    if versions is not None and domain.version not in versions:
        raise VersionMismatch
    return domain


async def _set_creators(
    session: WriteSession, domain: Domain, creators: DomainCreators, team: str | None
) -> None:
    """Set who may create on a domain. A team is only kept if it is the one that may."""
    domain.creators = creators.value
    if creators is not DomainCreators.TEAM:
        domain.team_id = None
    elif team:
        domain.team_id = await find_team_id(session, team)
        if domain.team_id is None:
            raise TeamNotFound
    elif domain.team_id is None:
        raise DomainTeamRequired


def _take_snapshot(domain: Domain) -> dict[str, Any]:
    return {name: getattr(domain, name) for name in _COMPARED_FIELDS}


def _name_action(domain: Domain, changed: Collection[str]) -> str:
    if list(changed) != ["state"]:
        return "domain.changed"
    return "domain.enabled" if domain.is_active else "domain.disabled"


def _audit(
    session: WriteSession,
    action: str,
    domain: Domain,
    actor_id: int | None,
    now: datetime,
    changed: Collection[str] = (),
) -> None:
    audit.add_entry(
        session,
        action,
        at=now,
        actor_id=actor_id,
        target=domain.host,
        detail=", ".join(changed) or None,
    )


# Teams that may create on a domain.


async def _keep_members(*_args: object) -> None:
    """Do nothing: who may create is read from the members each time."""


async def release_team(session: WriteSession, team_id: int) -> None:
    """Leave the domains of a team that is being deleted to administrators."""
    query = select(Domain).where(Domain.team_id == team_id).with_for_update()
    for domain in await session.scalars(query.order_by(Domain.host)):
        domain.creators, domain.team_id = DomainCreators.ADMINISTRATORS.value, None
        domain.version += 1
    await session.flush()


TEAM_HOOK = TeamHook(_keep_members, release_team)
