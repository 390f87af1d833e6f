"""The database as the one who knows the names: one prepared statement per look-up, straight to the driver."""

import asyncio

from sqlalchemy import or_, select

from refract.core.direct import Direct, Row, direct, moment
from refract.core.ids import decode
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl
from refract.links.access import Who, owned_by, shared_with
from refract.links.blocking import Blocked
from refract.links.models import FlagReason, Link, Visibility
from refract.links.queries import did_you_mean
from refract.links.templates import Template, read_template
from refract.names.grammar import name_key
from refract.names.models import Kind
from refract.redirect.resolve import Found, Visitor

LONG_AGO = float("-inf")
_NO_ID = -1
_FACTS = """l.id, l.destination, l.destination_host, l.redirect_status, l.status, l.expires_at, l.visibility, l.forward_query, l.title,
l.created_at, l.version, l.audience, l.random_code, (SELECT e.epoch FROM block_epoch e WHERE e.id = 1), l.flagged, l.flag_reason,
(SELECT u.held_at FROM link_owners o JOIN users u ON u.id = o.user_id WHERE o.primary_link_id = l.id)"""
_LIST_HELD = "(SELECT u.held_at FROM lists s JOIN users u ON u.id = s.owner_id WHERE n.kind = 'list' AND s.id = n.target_id)"
QUESTION = f"""SELECT 0, n.kind, n.target_id, n.name, {_LIST_HELD}, n.held_until, {_FACTS}
FROM names n LEFT JOIN links l ON n.kind = 'link' AND l.id = n.target_id WHERE n.key = ?
UNION ALL
SELECT 1, 'link', l.id, NULL, NULL, NULL, {_FACTS}
FROM links l WHERE l.id = ? AND l.random_code IS NULL"""  # noqa: S608 - our own column names
"""A name and a code in one question: two rows at most, and the name's comes first."""


class DatabaseLookup:
    """Blocked domains are kept in memory; each look-up brings their epoch along, so an old copy is never gone by."""

    def __init__(self, rt: Runtime, reader: Direct | None = None) -> None:
        self._rt = rt
        self._reader = reader or direct(rt.db)
        self._blocked = Blocked()
        self._loading = asyncio.Lock()

    async def find(self, text: str, asked_at: float = LONG_AGO) -> Found | None:
        """`asked_at` goes into what is found, for whoever wants to keep it."""
        link_id = decode(text)
        rows = await self._reader.rows(QUESTION, name_key(text), _NO_ID if link_id is None else link_id)
        for row in sorted(rows, key=lambda row: int(row[0])):
            _, kind, target_id, name, list_held, kept_until, number = row[:7]
            if kind == Kind.LIST:
                status = "active" if kept_until is None else "deleted"  # then its name is kept, so that this can be undone
                return Found(kind="list", id=target_id, name=name, status=status, on_hold=list_held is not None, asked_at=asked_at)
            if number is not None:  # else a name whose link was removed
                return await self._link(row, text, asked_at)
        return None

    async def may_open(self, found: Found, visitor: Visitor) -> bool:
        if visitor.is_admin or found.audience == Visibility.SIGNED_IN:
            return True
        user_id = visitor.user.id
        mine = select(Link.id).where(Link.id == found.id, or_(owned_by(user_id), shared_with(user_id)))
        async with self._rt.db.read() as session:
            return await session.scalar(mine) is not None

    async def suggest(self, text: str, visitor: Visitor | None) -> list[str]:
        who = None if visitor is None else Who(visitor.user.id, visitor.is_admin)
        async with self._rt.db.read() as session:
            return await did_you_mean(session, text, who, self._rt.clock.now())

    async def _link(self, row: Row, text: str, asked_at: float) -> Found:
        name, _, _, number, destination, host, redirect_status, status, expires_at = row[3:12]
        visibility, forward_query, title, made, version, audience, random_code, epoch, flagged, flag_reason, held_at = row[12:]
        return Found(
            kind="link",
            id=number,
            name=text if name is None else name,
            by_code=name is None or name == random_code,
            template=_template(destination),
            redirect_status=redirect_status,
            status=status,
            expires_at=moment(expires_at),
            restricted=visibility == Visibility.SECURE,
            audience=audience,
            forward_query=bool(forward_query),
            blocked=await self._is_blocked(host, epoch or 0),
            on_hold=held_at is not None,
            flag_reason=(flag_reason or FlagReason.UNCHECKED) if flagged else None,
            title=title,
            created_at=moment(made),
            version=version,
            epoch=epoch or 0,
            asked_at=asked_at,
        )

    async def _is_blocked(self, host: str, epoch: int) -> bool:
        if not self._blocked.knows(epoch):
            async with self._loading:
                if not self._blocked.knows(epoch):
                    async with self._rt.db.read() as session:
                        await self._blocked.load(session)
        return self._blocked.match(host) is not None


def _template(destination: str) -> Template | None:
    """None for a destination that is no URL by today's rules: it is not led to."""
    try:
        return read_template(destination)
    except BadUrl:
        return None
