"""Lookup of names and codes: one prepared statement, straight to the driver, and its caches."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from refract.core.db.raw import RawReader, RawRow, open_raw_reader, parse_db_time
from refract.core.errors import StoreUnavailable, Unavailable
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl
from refract.limits.buckets import MemoryBuckets
from refract.links.enums import FlagReason, Visibility
from refract.links.golinks.template import DestinationTemplate, parse_template
from refract.links.preview_cards import parse_card
from refract.links.rules.document import parse_rules
from refract.links.safety.blocklist import BlockedDomainSnapshot
from refract.names.enums import NameTarget
from refract.names.grammar import decode_name, is_kept, name_key, split_name
from refract.redirect.cache import NegativeCache
from refract.redirect.resolver import RedirectTarget, SignedInUser, TargetRule
from refract.redirect.visitors import VisitorFacts

UNKNOWN_TIME = float("-inf")
NO_ID = -1
_LINK_COLUMNS = """l.id, l.destination, l.destination_host, l.redirect_status, l.status,
l.expires_at, l.visibility, l.forward_query, l.title, l.created_at, l.version, l.audience,
l.random_code, (SELECT e.epoch FROM block_epoch e WHERE e.id = 1), l.flagged, l.flag_reason,
(SELECT u.held_at FROM link_owners o JOIN users u ON u.id = o.user_id
WHERE o.primary_link_id = l.id), l.password_hash, l.starts_at, l.before_destination,
l.expired_destination, l.rules, l.preview_card, l.noindex, l.click_limit, l.limit_destination,
CASE WHEN l.click_limit > 0 THEN (SELECT t.taken FROM link_limits t WHERE t.link_id = l.id) END"""
_LIST_HELD_AT = (
    "(SELECT u.held_at FROM lists s JOIN users u ON u.id = s.owner_id WHERE n.kind = 'list' AND"
    " s.id = n.target_id)"
)
LOOKUP_QUERY = f"""SELECT 0, n.kind, n.target_id, n.name, {_LIST_HELD_AT}, n.held_until,
{_LINK_COLUMNS}
FROM names n LEFT JOIN links l ON n.kind = 'link' AND l.id = n.target_id WHERE n.key = ?
UNION ALL
SELECT 1, 'link', l.id, NULL, NULL, NULL, {_LINK_COLUMNS}
FROM links l WHERE l.id = ? AND l.random_code IS NULL
AND COALESCE(l.domain, '') = ?"""  # noqa: S608 - our own column names
"""Looks up a name and a code in one query: at most two rows, the name's first.

A code leads to its link on the domain of the link only.
"""

KEPT_CODES_QUERY = "SELECT 1 FROM names n WHERE n.key >= '=' AND n.key < '>' LIMIT 1"
"""Finds out whether there are kept codes: their keys begin with `KEPT_MARK`."""

_EPOCH_QUERY = "SELECT epoch FROM block_epoch WHERE id = 1"
_BLOCKED_DOMAINS_QUERY = "SELECT domain FROM blocked_domains"


class DatabaseLookup:
    """Lookup in the database.

    Blocked domains are kept in memory. Each lookup reads their epoch, so no stale copy is used.
    """

    def __init__(self, rt: Runtime, reader: RawReader | None = None) -> None:
        self.has_kept_codes = True
        self._rt = rt
        self._reader = reader or open_raw_reader(rt.db)
        self._blocked_domains = BlockedDomainSnapshot()
        self._load_lock = asyncio.Lock()

    async def find(self, text: str, asked_at: float = UNKNOWN_TIME) -> RedirectTarget | None:
        """Return the target of a name or code. It carries `asked_at`, for caching."""
        link_id = decode_name(text)
        rows = await self._reader.fetch_rows(
            LOOKUP_QUERY,
            name_key(text),
            NO_ID if link_id is None else link_id,
            split_name(text)[0],
        )
        for row in sorted(rows, key=lambda row: int(row[0])):
            _, kind, target_id, name, list_held, kept_until, number = row[:7]
            if kind == NameTarget.LIST:
                # A deleted list keeps its name for a while, so that this can be undone.
                status = "active" if kept_until is None else "deleted"
                return RedirectTarget(
                    kind="list",
                    id=target_id,
                    name=split_name(name)[1],
                    host=split_name(name)[0],
                    status=status,
                    on_hold=list_held is not None,
                    asked_at=asked_at,
                )
            if number is not None:  # else the name of a purged link
                return await self._build_target(row, text, asked_at)
        return None

    async def can_open(self, found: RedirectTarget, visitor: SignedInUser) -> bool:
        if visitor.is_admin or found.audience == Visibility.SIGNED_IN:
            return True
        from refract.links.queries import is_owned_or_shared  # noqa: PLC0415 - loads SQLAlchemy

        async with self._rt.db.read() as session:
            return await is_owned_or_shared(session, found.id, visitor.user.id)

    async def read_rules(self, found: RedirectTarget) -> RedirectTarget:
        rules = await self._build_rules(found.unread_rules or "", found.epoch)
        return replace(found, rules=rules, unread_rules=None)

    async def suggest(self, text: str, visitor: SignedInUser | None) -> list[str]:
        from refract.links.access import LinkCaller  # noqa: PLC0415 - as above
        from refract.links.queries import suggest_similar_names  # noqa: PLC0415

        who = None if visitor is None else LinkCaller(visitor.user.id, visitor.is_admin)
        async with self._rt.db.read() as session:
            return await suggest_similar_names(session, text, who, self._rt.clock.now())

    async def _build_target(self, row: RawRow, text: str, asked_at: float) -> RedirectTarget:
        name, _, _, number, destination, host, redirect_status, status, expires_at = row[3:12]
        visibility, forward_query, title, made, version, audience, random_code, epoch = row[12:20]
        flagged, flag_reason, held_at, password_hash, starts_at, before, expired = row[20:27]
        rules, preview_card, noindex, click_limit, at_limit, taken = row[27:]
        host_of_name, bare = split_name(text if name is None else name)
        is_locked = audience == Visibility.PASSWORD
        return RedirectTarget(
            kind="link",
            id=number,
            name=bare,
            host=host_of_name,
            by_code=name is None or bare == random_code,
            is_kept=name is not None and is_kept(name),
            template=_parse_destination(destination),
            redirect_status=redirect_status,
            status=status,
            expires_at=parse_db_time(expires_at),
            restricted=visibility == Visibility.SECURE,
            audience=audience,
            forward_query=bool(forward_query),
            blocked=await self._is_blocked(host, epoch or 0),
            on_hold=held_at is not None,
            flag_reason=(flag_reason or FlagReason.UNCHECKED) if flagged else None,
            title=title,
            created_at=parse_db_time(made),
            version=version,
            epoch=epoch or 0,
            asked_at=asked_at,
            password_hash=password_hash if is_locked else None,
            starts_at=parse_db_time(starts_at),
            before_destination=await self._drop_blocked(before, epoch or 0),
            expired_destination=await self._drop_blocked(expired, epoch or 0),
            click_limit=click_limit,
            clicks_taken=taken or 0,
            limit_destination=await self._drop_blocked(at_limit, epoch or 0),
            rules=await self._build_rules(rules, epoch or 0) if rules and not is_locked else (),
            unread_rules=rules if is_locked else None,
            preview_card=parse_card(preview_card),
            noindex=bool(noindex),
        )

    async def _build_rules(self, text: str, epoch: int) -> tuple[TargetRule, ...]:
        built = []
        for rule in parse_rules(text):
            template = _parse_destination(rule.destination)
            blocked = template is not None and await self._is_blocked(template.host, epoch)
            built.append(TargetRule(rule.number, template, rule.conditions, blocked))
        return tuple(built)

    async def _drop_blocked(self, href: str | None, epoch: int) -> str | None:
        """Return a destination, or None if its host has been blocked since it was saved."""
        template = None if href is None else _parse_destination(href)
        if template is None or await self._is_blocked(template.host, epoch):
            return None
        return href

    async def _is_blocked(self, host: str, epoch: int) -> bool:
        if not self._blocked_domains.is_current(epoch):
            async with self._load_lock:
                if not self._blocked_domains.is_current(epoch):
                    self._blocked_domains = await self._load_blocked_domains()
        return self._blocked_domains.match(host) is not None

    async def _load_blocked_domains(self) -> BlockedDomainSnapshot:
        """Load the list. The epoch is read first, so that a change in between is loaded again."""
        epochs = await self._reader.fetch_rows(_EPOCH_QUERY)
        domains = await self._reader.fetch_rows(_BLOCKED_DOMAINS_QUERY)
        return BlockedDomainSnapshot(
            epochs[0][0] if epochs else 0, (str(domain) for (domain,) in domains)
        )


def _parse_destination(destination: str) -> DestinationTemplate | None:
    """Return the template, or None if the destination is no valid URL by current rules."""
    try:
        return parse_template(destination)
    except BadUrl:
        return None


# Tiers behind the L1 cache: missing names, the shared cache, the database. Concurrent lookups of a
# name share one read. A result carries the time when its read began, so that nothing invalidated
# since is cached.

QUERY_TIMEOUT = 2.0
"""Seconds after which the database counts as unavailable."""

RETRY_INTERVAL = 0.5
"""Seconds before an unavailable database is tried again."""

SUGGESTION_BURST = 50
SUGGESTIONS_PER_SECOND = 10

LINGER_TURNS = 5
"""A result needs a few turns of the event loop to reach the cache; until then it is shared."""


class SharedLinkCache(Protocol):
    """A cache shared by processes. It never contains a restricted link."""

    async def get(self, text: str, *, allow_stale: bool = False) -> RedirectTarget | None:
        """Return the cached target of a text; None if the database must be read, also on a timeout.

        `allow_stale` accepts old entries, for when the database is unavailable.
        """

    async def put(self, text: str, found: RedirectTarget) -> None:
        """Share a target from the database, if every visitor may open it."""


def build_negative_keys(text: str) -> tuple[bytes, ...]:
    """Return the keys that must be cached as missing for a text to be missing: name and code."""
    named = build_missing_name_key(name_key(text))
    return (named,) if decode_name(text) is None else (named, build_missing_code_key(text))


def build_missing_name_key(key: str) -> bytes:
    return b"n" + key.encode("utf-8", "surrogateescape")


def build_missing_code_key(code: str) -> bytes:
    return b"c" + code.encode("utf-8", "surrogateescape")


class TieredLookup:
    """Looks up names and codes in the cheapest tier that knows them."""

    def __init__(
        self,
        database: DatabaseLookup,
        negatives: NegativeCache,
        shared: SharedLinkCache | None = None,
        facts: VisitorFacts | None = None,
    ) -> None:
        self.queries = 0
        self.negative_hits = 0
        self.failed = 0
        self.has_kept_codes = True
        """False once this is known to be so. Changes that add one tell so."""
        self._database = database
        self._negatives = negatives
        self._now: Callable[[], float] = negatives.now
        self._shared = shared
        self._facts = facts
        self._inflight: dict[str, asyncio.Task[RedirectTarget | None]] = {}
        self._unavailable_until = float("-inf")
        self._suggestion_buckets = MemoryBuckets(
            size=SUGGESTION_BURST, per_second=SUGGESTIONS_PER_SECOND
        )

    async def find(self, text: str) -> RedirectTarget | None:
        if all(fact in self._negatives for fact in build_negative_keys(text)):
            self.negative_hits += 1
            return None
        flight = self._inflight.get(text)
        if flight is None:
            if self._shared is None and self._now() < self._unavailable_until:
                raise StoreUnavailable
            flight = self._inflight[text] = asyncio.create_task(
                self._read_target(text), name="redirect-read"
            )
            flight.add_done_callback(partial(self._on_read_done, text))
        return await asyncio.shield(flight)  # a cancelled request leaves the read to others

    def drop_inflight(self) -> None:
        """Do not share reads that began before a change."""
        self._inflight.clear()

    async def refresh_shared(self, text: str) -> None:
        """Read a name or code again and write it to the shared cache."""
        if self._shared is None:
            return
        began = self._now()
        with contextlib.suppress(Unavailable):
            found = await self._query_database(text, began)
            if found is not None:
                await self._shared.put(text, found)

    async def can_open(self, found: RedirectTarget, visitor: SignedInUser) -> bool:
        return await self._database.can_open(found, visitor)

    async def read_rules(self, found: RedirectTarget) -> RedirectTarget:
        return await self._load_facts(await self._database.read_rules(found))

    async def suggest(self, text: str, visitor: SignedInUser | None) -> list[str]:
        """Suggest similar names, with a limit for anonymous visitors: the search is expensive."""
        if visitor is None and self._suggestion_buckets.take("strangers", self._now()) < 0:
            return []
        try:
            return await self._database.suggest(text, visitor)
        except Unavailable:
            return []

    def _on_read_done(self, text: str, flight: asyncio.Task[RedirectTarget | None]) -> None:
        well = not flight.cancelled() and flight.exception() is None
        if not well:
            self.failed += not flight.cancelled()
        self._expire_inflight(
            text, flight, LINGER_TURNS if well and flight.result() is not None else 0
        )

    def _expire_inflight(
        self, text: str, flight: asyncio.Task[RedirectTarget | None], turns: int
    ) -> None:
        if self._inflight.get(text) is not flight:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._expire_inflight, text, flight, turns - 1)
        else:
            del self._inflight[text]

    async def _read_target(self, text: str) -> RedirectTarget | None:
        found = await self._read_tiers(text)
        return found if found is None else await self._load_facts(found)

    async def _load_facts(self, found: RedirectTarget) -> RedirectTarget:
        """Make known what the rules of a link ask about its visitors."""
        if self._facts is not None and any("countries" in rule.conditions for rule in found.rules):
            await self._facts.load_places()
        return found

    async def _read_tiers(self, text: str) -> RedirectTarget | None:
        began = self._now()
        if self._shared is not None and (found := await self._shared.get(text)) is not None:
            return replace(found, asked_at=began)
        try:
            found = await self._query_database(text, began)
        except StoreUnavailable:
            found = (
                await self._shared.get(text, allow_stale=True) if self._shared is not None else None
            )
            if found is None:
                raise
            return replace(found, asked_at=began)
        if found is None:
            for fact in build_negative_keys(text):
                self._negatives.add(fact, began)
        elif self._shared is not None:
            await self._shared.put(text, found)
        return found

    async def _query_database(self, text: str, began: float) -> RedirectTarget | None:
        if self._now() < self._unavailable_until:
            raise StoreUnavailable
        self.queries += 1
        try:
            async with asyncio.timeout(QUERY_TIMEOUT):
                return await self._database.find(text, began)
        except (StoreUnavailable, TimeoutError) as exc:
            self._unavailable_until = self._now() + RETRY_INTERVAL
            raise StoreUnavailable from exc
