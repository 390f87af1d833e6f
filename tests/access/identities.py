"""Who may knock: each identity as the headers it sends."""

import pickle
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import make_url

from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.settings.issuers import Issuer
from refract.identity.models import Scope, User
from refract.teams.models import Team
from tests import make
from tests.client import by_cookie, by_key
from tests.identity.issuer import CLIENT, ISSUER, bearer, claims, publish, sign

ISSUERS = {"work": Issuer(url=ISSUER, client_id=CLIENT, groups_claim="groups")}
"""The provider that vouches for everybody in this world; its keys are known, so nobody asks it."""

CHOIR = "choir"
"""The handle of a team that everybody is in, and that owns nothing."""


class Who(StrEnum):
    """Owner, co-owner and recipient stand so to every object that the path names.

    The others have nothing to do with it.
    """

    STRANGER = "stranger"
    OWNER = "owner"
    OWNER_IN_BROWSER = "owner in a browser"
    OWNER_BY_TOKEN = "owner with a provider's token"
    OWNER_UNPROVEN = "owner in a browser, without proof of origin"
    OWNER_READ_ONLY = "owner with a read-only key"
    OWNER_REVOKED = "owner with a revoked key"
    CO_OWNER = "co-owner"
    RECIPIENT = "recipient"
    MANAGER = "manager of a team that co-owns"
    MEMBER = "member of that team"
    FORMER_MEMBER = "former member of that team"
    INVITED = "invited to co-own, and has not answered"
    TEAM_KEY = "key of that team"
    OTHER = "other user"
    SUSPENDED = "suspended user"
    ADMIN = "administrator"
    ADMIN_WITHOUT_SCOPE = "administrator with an ordinary key"


@dataclass(frozen=True)
class World:
    """Everybody, and what they send. Object makers take people from here."""

    rt: Runtime
    owner: User
    co_owner: User
    recipient: User
    other: User
    suspended: User
    admin: User
    manager: User
    member: User
    former: User
    invited: User
    crew: Team
    headers: dict[Who, dict[str, str]]
    made: dict[str, str] = field(default_factory=dict)


class SavedRows:
    """Everything in a SQLite database, as it was when it was saved."""

    def __init__(self) -> None:
        self._rows = sqlite3.connect(":memory:", check_same_thread=False)

    def save(self, rt: Runtime) -> None:
        with closing(_connect(rt)) as live:
            live.backup(self._rows)

    def restore(self, rt: Runtime) -> None:
        """Replace what is in the database, as another process would."""
        with closing(_connect(rt)) as live:
            self._rows.backup(live)

    def close(self) -> None:
        self._rows.close()


def _connect(rt: Runtime) -> sqlite3.Connection:
    file = make_url(rt.settings.effective_database_url).database
    assert file is not None
    return sqlite3.connect(file)


class WorldSnapshot(NamedTuple):
    """A world as it was when it had been made: its rows, its people, and the last id of them."""

    rows: SavedRows
    people: bytes
    ids: dict[str, Any]


_snapshots: dict[tuple[object, ...], WorldSnapshot] = {}
"""By what a world depends on. Making one costs more than most requests of a test."""


async def populate(rt: Runtime) -> World:
    """Return a world in an empty database, on SQLite as a copy of the first one of its kind."""
    if rt.db.dialect != "sqlite" or not isinstance(rt.ids, SnowflakeGenerator):
        return await make_world(rt)
    given = rt.settings
    key = (rt.clock.now(), given.public_url, given.secret_key, rt.ids.last_ms, rt.ids.worker)
    if key in _snapshots:
        snapshot = _snapshots[key]
        snapshot.rows.restore(rt)
        vars(rt.ids).update(snapshot.ids)
        copied: World = pickle.loads(snapshot.people)  # noqa: S301 - our own bytes
        return replace(copied, rt=rt)
    world = await make_world(rt)
    rows = SavedRows()
    rows.save(rt)
    ids = {name: vars(rt.ids)[name] for name in ("last_ms", "_sequence")}
    people = pickle.dumps(replace(world, rt=None))  # type: ignore[arg-type]
    _snapshots[key] = WorldSnapshot(rows, people, ids)
    return world


async def make_world(rt: Runtime) -> World:
    await publish(rt)
    async with rt.db.write() as session:
        await make.admin(session, rt, "spare")  # the last administrator could not leave
        owner, co_owner, recipient, other = [
            await make.person(session, rt, name) for name in ("olga", "carl", "rita", "otto")
        ]
        manager, member, former, invited = [
            await make.person(session, rt, name) for name in ("mona", "mara", "fred", "ivan")
        ]
        crew = await make.team(session, rt, manager, member)
        everybody = (co_owner, recipient, other, manager, member, former, invited)
        await make.team(session, rt, owner, *everybody, name=CHOIR)
        suspended, admin = await make.suspended(session, rt), await make.admin(session, rt)
        cookie = await make.cookie(session, rt, owner)
        headers = {
            Who.STRANGER: {},
            Who.OWNER: by_key(await make.key(session, rt, owner)),
            Who.OWNER_IN_BROWSER: by_cookie(rt, cookie),
            Who.OWNER_BY_TOKEN: bearer(sign(claims(rt.clock.now(), sub=owner.subject, aud=CLIENT))),
            Who.OWNER_UNPROVEN: by_cookie(rt, cookie, proven=False),
            Who.OWNER_READ_ONLY: by_key(await make.key(session, rt, owner, Scope.READ)),
            Who.OWNER_REVOKED: by_key(await make.revoked_key(session, rt, owner)),
            Who.CO_OWNER: by_key(await make.key(session, rt, co_owner)),
            Who.RECIPIENT: by_key(await make.key(session, rt, recipient)),
            Who.MANAGER: by_key(await make.key(session, rt, manager)),
            Who.MEMBER: by_key(await make.key(session, rt, member)),
            Who.FORMER_MEMBER: by_key(await make.key(session, rt, former)),
            Who.INVITED: by_key(await make.key(session, rt, invited)),
            Who.TEAM_KEY: by_key(await make.team_key(session, rt, crew, manager)),
            Who.OTHER: by_key(await make.key(session, rt, other)),
            Who.SUSPENDED: by_key(await make.key(session, rt, suspended)),
            Who.ADMIN: by_key(await make.key(session, rt, admin, *make.ALL)),
            Who.ADMIN_WITHOUT_SCOPE: by_key(await make.key(session, rt, admin)),
        }
    return World(
        rt,
        owner,
        co_owner,
        recipient,
        other,
        suspended,
        admin,
        manager,
        member,
        former,
        invited,
        crew,
        headers,
    )
