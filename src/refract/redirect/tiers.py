"""Who knows the names when the table does not: what is known to be missing, a cache that processes share, the database.

A name that many ask for at once is read once. What is read notes when the reading began, so that nothing forgotten meanwhile is kept.
"""

import asyncio
from functools import partial
from typing import Protocol

from refract.core.direct import Direct, Row, moment
from refract.core.errors import StoreUnavailable, Unavailable
from refract.core.ids import decode, encode
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl
from refract.identity.access import Right
from refract.links.access import Who, standing_of
from refract.links.blocking import Blocked
from refract.links.models import Link
from refract.links.queries import did_you_mean
from refract.links.templates import Template, read_template
from refract.names.grammar import name_key
from refract.names.models import Kind
from refract.redirect.resolve import Found, Visitor
from refract.redirect.table import Negatives

ASK_SECONDS = 2.0
"""How long the database may take before it counts as away."""

AWAY_SECONDS = 0.5
"""Once it was away, nobody waits for it again before this has passed."""

_NO_ID = -1
_COLUMNS = """l.destination, l.destination_host, l.redirect_status, l.status, l.expires_at, l.visibility, l.forward_query,
l.title, l.created_at, l.version, (SELECT e.epoch FROM block_epoch e WHERE e.id = 1)"""
QUESTION = f"""SELECT 0, n.kind, n.name, n.target_id, l.id, {_COLUMNS}
FROM names n LEFT JOIN links l ON n.kind = 'link' AND l.id = n.target_id WHERE n.key = ?
UNION ALL
SELECT 1, 'link', NULL, l.id, l.id, {_COLUMNS}
FROM links l WHERE l.id = ?"""  # noqa: S608 - our own column names
"""A name and a code in one question: two rows at most, and the name's comes first."""


class SharedTier(Protocol):
    """A cache between this process and the database that other processes fill too. It never holds a secure link."""

    async def get(self, text: str) -> Found | None:
        """What is known of a text; None when the database must be asked, also because the cache does not answer in time."""

    async def put(self, text: str, found: Found) -> None: ...


def facts(text: str) -> tuple[bytes, ...]:
    """What must be known for a text to be missing: no such name in any spelling, and no link with exactly this code."""
    named = no_name(name_key(text))
    return (named,) if decode(text) is None else (named, no_code(text))


def no_name(key: str) -> bytes:
    return b"n" + key.encode("utf-8", "surrogateescape")


def no_code(code: str) -> bytes:
    return b"c" + code.encode("utf-8", "surrogateescape")


class Tiers:
    """Looks a name or a code up, as cheaply as it can be known."""

    def __init__(self, rt: Runtime, reader: Direct, negatives: Negatives, shared: SharedTier | None = None) -> None:
        self.queries = 0
        self.known_missing = 0
        self.failed = 0
        self._rt = rt
        self._reader = reader
        self._negatives = negatives
        self._shared = shared
        self._blocked = Blocked()
        self._loading = asyncio.Lock()
        self._flights: dict[str, asyncio.Task[Found | None]] = {}
        self._away_until = float("-inf")

    async def find(self, text: str) -> Found | None:
        if all(fact in self._negatives for fact in facts(text)):
            self.known_missing += 1
            return None
        flight = self._flights.get(text)
        if flight is None:
            if self._negatives.now() < self._away_until:
                raise StoreUnavailable
            flight = self._flights[text] = asyncio.create_task(self._read(text), name="redirect-read")
            flight.add_done_callback(partial(self._landed, text))
        return await asyncio.shield(flight)  # whoever gives up leaves the others their answer

    def forget_flights(self) -> None:
        """Something changed: who asks from now on must not be given what was read before."""
        self._flights.clear()

    def _landed(self, text: str, flight: asyncio.Task[Found | None]) -> None:
        if self._flights.get(text) is flight:
            del self._flights[text]
        if not flight.cancelled() and flight.exception() is not None:
            self.failed += 1

    async def _read(self, text: str) -> Found | None:
        began = self._negatives.now()
        if self._shared is not None and (found := await self._shared.get(text)) is not None:
            return found
        try:
            async with asyncio.timeout(ASK_SECONDS):
                found = await self._ask(text, began)
        except (StoreUnavailable, TimeoutError) as error:
            self._away_until = self._negatives.now() + AWAY_SECONDS
            raise StoreUnavailable from error
        if found is None:
            for fact in facts(text):
                self._negatives.add(fact, began)
        elif self._shared is not None and not found.secure:
            await self._shared.put(text, found)
        return found

    async def _ask(self, text: str, began: float) -> Found | None:
        self.queries += 1
        number = decode(text)
        rows = await self._reader.rows(QUESTION, name_key(text), _NO_ID if number is None else number)
        for row in sorted(rows, key=lambda row: int(row[0])):
            if row[1] == Kind.LIST:
                return Found(kind="list", id=row[3], name=row[2], asked_at=began)
            if row[4] is not None:  # else a name whose link was removed
                return await self._link(row, began)
        return None

    async def _link(self, row: Row, began: float) -> Found:
        (
            _,
            _,
            name,
            _,
            number,
            destination,
            host,
            redirect_status,
            status,
            expires_at,
            visibility,
            forward_query,
            title,
            made,
            version,
            epoch,
        ) = row
        return Found(
            kind="link",
            id=number,
            name=name if name is not None else encode(number),
            template=_template(destination),
            redirect_status=redirect_status,
            status=status,
            expires_at=moment(expires_at),
            secure=visibility == "secure",
            forward_query=bool(forward_query),
            blocked=await self._is_blocked(host, epoch or 0),
            title=title,
            created_at=moment(made),
            version=version,
            asked_at=began,
        )

    async def _is_blocked(self, host: str, epoch: int) -> bool:
        """The list of blocked domains is kept in memory; the answer itself says when it has grown old."""
        if not self._blocked.knows(epoch):
            async with self._loading:
                if not self._blocked.knows(epoch):
                    async with self._rt.db.read() as session:
                        await self._blocked.load(session)
        return self._blocked.match(host) is not None

    async def may_open(self, found: Found, visitor: Visitor) -> bool:
        async with self._rt.db.read() as session:
            link = await session.get(Link, found.id)
            return link is not None and (await standing_of(session, _who(visitor), link)).may(Right.VIEW)

    async def suggest(self, text: str, visitor: Visitor | None) -> list[str]:
        try:
            async with self._rt.db.read() as session:
                return await did_you_mean(session, text, _who(visitor) if visitor else None, self._rt.clock.now())
        except Unavailable:
            return []


def _template(destination: str) -> Template | None:
    """None for what is no longer accepted as a destination; such a link leads nowhere."""
    try:
        return read_template(destination)
    except BadUrl:
        return None


def _who(visitor: Visitor) -> Who:
    return Who(visitor.user.id, visitor.is_admin)
