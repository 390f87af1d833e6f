"""The database as the one who knows the names: one statement per look-up."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import CompoundSelect, Select, String, and_, bindparam, literal, null, or_, select, type_coerce, union_all

from refract.core.db import ReadSession
from refract.core.ids import decode
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl
from refract.links.access import Who, owned_by, shared_with
from refract.links.blocking import Blocked
from refract.links.models import Link, Visibility
from refract.links.queries import did_you_mean
from refract.links.safety_models import BlockEpoch
from refract.links.templates import Template, read_template
from refract.names.grammar import name_key
from refract.names.models import Kind, Name
from refract.redirect.resolve import Found, Visitor

_FACTS = (
    Link.id,
    Link.destination,
    Link.destination_host,
    Link.redirect_status,
    Link.status,
    Link.expires_at,
    Link.visibility,
    Link.forward_query,
    Link.title,
    Link.created_at,
    Link.version,
)
_EPOCH = select(BlockEpoch.epoch).scalar_subquery().label("epoch")


def _by_name() -> Select[Any]:
    return (
        select(literal(0).label("way"), Name.kind, Name.target_id, Name.name, _EPOCH, *_FACTS)
        .outerjoin(Link, and_(Name.kind == Kind.LINK, Link.id == Name.target_id))
        .where(Name.key == bindparam("key"))
    )


def _by_name_or_code() -> CompoundSelect[Any]:
    code = select(
        literal(1), literal(Kind.LINK.value, String(10)), Link.id, type_coerce(null(), String(64)).label("name"), _EPOCH, *_FACTS
    ).where(Link.id == bindparam("id"))
    return union_all(_by_name(), code)


class DatabaseLookup:
    """Blocked domains are kept in memory; each look-up brings their epoch along, so an old copy is never gone by."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._blocked = Blocked()
        self._named = _by_name()
        self._either = _by_name_or_code()

    async def find(self, text: str) -> Found | None:
        link_id = decode(text)
        async with self._rt.db.read() as session:
            asked = {"key": name_key(text), "id": link_id} if link_id is not None else {"key": name_key(text)}
            rows = (await session.execute(self._named if link_id is None else self._either, asked)).mappings().all()
            for row in sorted(rows, key=lambda row: int(row["way"])):
                if row["kind"] == Kind.LIST:
                    return Found(kind="list", id=row["target_id"], name=row["name"])
                if row["id"] is not None:
                    return await self._link(session, row, row["name"] or text)
        return None

    async def may_open(self, found: Found, visitor: Visitor) -> bool:
        if visitor.is_admin:
            return True
        user_id = visitor.user.id
        mine = select(Link.id).where(Link.id == found.id, or_(owned_by(user_id), shared_with(user_id)))
        async with self._rt.db.read() as session:
            return await session.scalar(mine) is not None

    async def suggest(self, text: str, visitor: Visitor | None) -> list[str]:
        who = None if visitor is None else Who(visitor.user.id, visitor.is_admin)
        async with self._rt.db.read() as session:
            return await did_you_mean(session, text, who, self._rt.clock.now())

    async def _link(self, session: ReadSession, row: Mapping[Any, Any], name: str) -> Found:
        if not self._blocked.knows(row["epoch"] or 0):
            await self._blocked.load(session)
        return Found(
            kind="link",
            id=row["id"],
            name=name,
            by_code=row["name"] is None,
            template=_template(row["destination"]),
            redirect_status=row["redirect_status"],
            status=row["status"],
            expires_at=row["expires_at"],
            secure=row["visibility"] == Visibility.SECURE,
            forward_query=row["forward_query"],
            blocked=self._blocked.match(row["destination_host"]) is not None,
            title=row["title"],
            created_at=row["created_at"],
            version=row["version"],
        )


def _template(destination: str) -> Template | None:
    """None for a destination that is no URL by today's rules: it is not led to."""
    try:
        return read_template(destination)
    except BadUrl:
        return None
