"""L2 cache in Redis: link targets, shared by all processes.

    refract:6:n:<normalized name>   target of a name    "<id> <version> <epoch> <json>"
    refract:6:c:<code>              target of a code    the same
    refract:least:<id>              minimum valid version of a link, kept for longer than any entry

Names and codes on other domains than the default one have their host before them.

A change writes only the last of these: from then on entries of older versions are invalid under
every name, and none can be written. Versions that this process knows from the feed count as well,
so a Redis that missed a change does no harm.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import structlog

from refract.core.redis import RedisClient, RedisScript, RedisUnavailable
from refract.core.urls import BadUrl
from refract.links.changes import ALL_TARGETS
from refract.links.golinks.template import parse_template
from refract.links.preview_cards import format_card, parse_card
from refract.names.grammar import decode_name, name_key
from refract.redirect.resolver import RedirectTarget, TargetRule

NAME_PREFIX: Final = "refract:6:n:"
CODE_PREFIX: Final = "refract:6:c:"
"""The number is increased when older releases would share entries that newer ones must not serve.

Here: links without what search engines are asked (5), or links with a click limit (6).
"""

ENTRY_TTL_SECONDS: Final = 280.0
"""Shorter than the feed's retention: a new process still reads every change of an entry."""

MIN_VERSION_TTL_SECONDS: Final = 300
MAX_MIN_VERSIONS: Final = 50_000
BATCH_SIZE: Final = 500

GET_SCRIPT: Final = RedisScript("""
for i = 1, #KEYS do
  local value = redis.call('GET', KEYS[i])
  if value then
    local id, version = string.match(value, '^(%d+) (%d+) ')
    local least = redis.call('GET', 'refract:least:' .. id)
    if not least or tonumber(version) >= tonumber(least) then return value end
  end
end
return false
""")

PUT_SCRIPT: Final = RedisScript("""
local least = redis.call('GET', KEYS[2])
if least and tonumber(ARGV[2]) < tonumber(least) then return 0 end
local old = redis.call('GET', KEYS[1])
if old then
  local id, version = string.match(old, '^(%d+) (%d+) ')
  if id == ARGV[1] and tonumber(version) > tonumber(ARGV[2]) then return 0 end
end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 1
""")

INVALIDATE_SCRIPT: Final = RedisScript("""
for i = 1, #KEYS do
  local least = redis.call('GET', KEYS[i])
  if not least or tonumber(ARGV[i + 1]) > tonumber(least) then
    redis.call('SET', KEYS[i], ARGV[i + 1], 'EX', ARGV[1])
  end
end
""")


class RedisLinkCache:
    """The shared cache. Entries that this process knows to be outdated are ignored."""

    def __init__(
        self,
        redis: RedisClient,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.hits = 0
        self.key_mismatches = 0
        self.feed_stale = True
        """Set while the feed of changes cannot be read: then the database is queried first."""
        self._redis = redis
        self._now = now
        self._monotonic = monotonic
        self._min_versions: OrderedDict[int, tuple[int, float]] = OrderedDict()
        self._distrusted_until = float("-inf")
        self._epoch: int | None = None
        self._epoch_unknown_since = float("-inf")
        self._log = structlog.get_logger("refract.shared")

    async def get(self, text: str, *, allow_stale: bool = False) -> RedirectTarget | None:
        """Return the cached target of a text.

        `allow_stale` accepts old entries, for when the database is unavailable.
        """
        if not allow_stale and (
            self.feed_stale or self._epoch is None or self._monotonic() < self._distrusted_until
        ):
            return None
        keys = _build_keys(text)
        try:
            value = await self._redis.run_script(GET_SCRIPT, [key for key, _ in keys])
        except RedisUnavailable:
            return None
        found = self._parse_entry(value, {known for _, known in keys}) if value else None
        if (
            found is None
            or (not allow_stale and found.epoch != self._epoch)
            or found.version < self._min_versions.get(found.id, (0, 0.0))[0]
        ):
            return None
        self.hits += 1
        return found

    async def put(self, text: str, found: RedirectTarget) -> None:
        """Share a target from the database, and note its epoch of blocked domains."""
        if found.asked_at > self._epoch_unknown_since:
            self._epoch = max(found.epoch, self._epoch or 0)
        left = ENTRY_TTL_SECONDS
        if found.expires_at is not None:
            left = min(left, (found.expires_at - self._now()).total_seconds())
        is_scheduled = found.starts_at is not None and found.starts_at > self._now()
        if not found.is_cacheable or found.template is None or is_scheduled or left <= 0:
            return
        # A random code is stored like a name.
        named = not found.by_code or decode_name(text) is None
        key, known = (
            (f"{NAME_PREFIX}{name_key(text)}", name_key(text))
            if named
            else (f"{CODE_PREFIX}{text}", text)
        )
        target = json.dumps(
            _encode_target(found, known, found.template.href), separators=(",", ":")
        )
        value = f"{found.id} {found.version} {found.epoch} {target}"
        try:
            await self._redis.run_script(
                PUT_SCRIPT,
                [key, _build_min_version_key(found.id)],
                found.id,
                found.version,
                value,
                max(1, int(left * 1000)),
            )
        except RedisUnavailable:
            return

    async def invalidate(self, changes: Sequence[tuple[int, int]]) -> None:
        """Raise the minimum versions of changed links for all processes."""
        known = [(target, version) for target, version in changes if target != ALL_TARGETS]
        for begin in range(0, len(known), BATCH_SIZE):
            batch = known[begin : begin + BATCH_SIZE]
            await self._redis.run_script(
                INVALIDATE_SCRIPT,
                [_build_min_version_key(target) for target, _ in batch],
                MIN_VERSION_TTL_SECONDS,
                *(version for _, version in batch),
            )

    def note_version(self, target: int, version: int) -> None:
        """Record the version of a change, from any source."""
        now = self._monotonic()
        if target == ALL_TARGETS:
            self._epoch, self._epoch_unknown_since = None, now
            return
        self._min_versions[target] = (
            max(version, self._min_versions.pop(target, (0, 0.0))[0]),
            now,
        )
        while (
            self._min_versions
            and next(iter(self._min_versions.values()))[1] < now - MIN_VERSION_TTL_SECONDS
        ):
            self._min_versions.popitem(last=False)
        if len(self._min_versions) > MAX_MIN_VERSIONS:
            self._min_versions.clear()
            self.distrust_entries()

    def distrust_entries(self) -> None:
        """Ignore all entries until those written so far have expired: too many changes to track."""
        self._distrusted_until = self._monotonic() + MIN_VERSION_TTL_SECONDS

    def _parse_entry(self, value: bytes, asked: set[str]) -> RedirectTarget | None:
        try:
            number, version, epoch, rest = value.decode().split(" ", 3)
            facts: dict[str, Any] = json.loads(rest)
            if facts["for"] not in asked:
                self.key_mismatches += 1
                self._log.error("redis_key_mismatched")
                return None
            return _decode_target(int(number), int(version), int(epoch), facts)
        except (ValueError, KeyError, TypeError, BadUrl):
            return None  # written by another release


def _build_keys(text: str) -> list[tuple[str, str]]:
    named = name_key(text)
    keys = [(f"{NAME_PREFIX}{named}", named)]
    return keys if decode_name(text) is None else [*keys, (f"{CODE_PREFIX}{text}", text)]


def _build_min_version_key(target: int) -> str:
    return f"refract:least:{target}"


def _encode_target(found: RedirectTarget, known: str, href: str) -> dict[str, Any]:
    return {
        "for": known,
        "name": found.name,
        "host": found.host,
        "by_code": found.by_code,
        "kept": found.is_kept,
        "to": href,
        "redirect": found.redirect_status,
        "status": found.status,
        "expires": found.expires_at.isoformat() if found.expires_at else None,
        "forward": found.forward_query,
        "noindex": found.noindex,
        "blocked": found.blocked,
        "title": found.title,
        "made": found.created_at.isoformat() if found.created_at else None,
        "rules": [
            (
                rule.number,
                rule.template.href if rule.template else None,
                dict(rule.conditions),
                rule.blocked,
            )
            for rule in found.rules
        ],
        "card": format_card(found.preview_card) if found.preview_card is not None else None,
    }


def _decode_target(number: int, version: int, epoch: int, facts: dict[str, Any]) -> RedirectTarget:
    return RedirectTarget(
        kind="link",
        id=number,
        name=str(facts["name"]),
        host=str(facts.get("host", "")),  # older versions write none
        by_code=bool(facts["by_code"]),
        is_kept=bool(facts.get("kept")),
        template=parse_template(facts["to"]),
        redirect_status=int(facts["redirect"]),
        status=str(facts["status"]),
        expires_at=datetime.fromisoformat(facts["expires"]) if facts["expires"] else None,
        forward_query=bool(facts["forward"]),
        blocked=bool(facts["blocked"]),
        title=facts["title"],
        created_at=datetime.fromisoformat(facts["made"]) if facts["made"] else None,
        version=version,
        epoch=epoch,
        rules=tuple(
            TargetRule(int(number), parse_template(href) if href else None, conditions, blocked)
            for number, href, conditions, blocked in facts["rules"]
        ),
        preview_card=parse_card(facts["card"]),
        noindex=bool(facts["noindex"]),
    )
