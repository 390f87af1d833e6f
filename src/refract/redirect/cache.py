"""L1 cache: from the raw path of a request to a response that only lacks the date.

The paths of another domain have its host before them. Its raw path begins with a slash, so no path
of the default domain is taken for one.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final

from refract.clicks.spool.format import LINK_CLICK

if TYPE_CHECKING:
    from refract.redirect.rules import CachedRules

NEVER: Final = (1 << 63) - 1
INVALIDATION_MEMORY_SECONDS: Final = 10.0
MAX_NEGATIVE_SECONDS: Final = 60.0
STALE_TIMEOUT: Final = 0.25
"""Seconds after which a stale redirect is served instead of one from the database."""
STALE_GRACE: Final = 0.5
"""After a timeout, stale redirects are served immediately for this many seconds."""
_METHOD_PRESERVING_STATUSES: Final = frozenset({b"307", b"308"})


class CachedRedirect:
    """A prepared response. `target` is the id of the link or list entry, as `kind` says.

    `domain` is what its clicks say about their domain, made by `encode_domain`. With `rules`, these
    decide about the response, and `head` is that of the destination of the link.
    """

    __slots__ = (
        "any_method",
        "domain",
        "expires_ns",
        "forwards_query",
        "guessable",
        "head",
        "kind",
        "path",
        "rules",
        "seen",
        "target",
        "version",
    )

    def __init__(  # noqa: PLR0913 - most have defaults
        self,
        target: int,
        version: int,
        head: bytes,
        expires_ns: int = NEVER,
        *,
        forwards_query: bool = False,
        kind: int = LINK_CLICK,
        guessable: bool = False,
        domain: bytes = b"",
        rules: "CachedRules | None" = None,
    ) -> None:
        self.target = target
        self.version = version
        self.head = head
        self.any_method = head[9:12] in _METHOD_PRESERVING_STATUSES
        self.expires_ns = expires_ns
        self.forwards_query = forwards_query
        self.kind = kind
        self.guessable = guessable
        self.domain = domain
        self.rules = rules
        self.path = b""
        self.seen = False


class RecentInvalidations:
    """Invalidations of the last seconds, so that a value read before one is not cached after it."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._recorded_at: dict[Hashable, float] = {}
        self._order: deque[tuple[float, Hashable]] = deque()
        self._all_recorded_at = float("-inf")

    def record(self, token: Hashable) -> None:
        now = self._monotonic()
        self._recorded_at[token] = now
        self._order.append((now, token))
        while self._order[0][0] < now - INVALIDATION_MEMORY_SECONDS:
            at, old = self._order.popleft()
            if self._recorded_at.get(old) == at:  # else recorded again since
                del self._recorded_at[old]

    def record_all(self) -> None:
        self._all_recorded_at = self._monotonic()
        self._recorded_at.clear()
        self._order.clear()

    def has_any_since(self, began: float, *tokens: Hashable) -> bool:
        """Return whether any token was invalidated after `began`.

        Return True as well if `began` is too long ago to know.
        """
        if (
            began <= self._all_recorded_at
            or began <= self._monotonic() - INVALIDATION_MEMORY_SECONDS
        ):
            return True
        return any(self._recorded_at.get(token, float("-inf")) >= began for token in tokens)

    def __len__(self) -> int:
        return len(self._recorded_at)


class RedirectCache:
    """A cache of at most `capacity` paths, evicted by second chance: a hit only sets a flag.

    Callers of `fill` take `now()` before they read the store. Times are monotonic seconds.
    """

    def __init__(
        self,
        capacity: int,
        *,
        paths_per_target: int = 16,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        # Never replaced: the protocol holds a reference.
        self.paths: dict[bytes, CachedRedirect] = {}
        self.trusted_until_ns = NEVER
        """From this time on no hit counts: invalidations have not been received for too long."""
        self.now = monotonic
        self.refused = 0
        self.evicted = 0
        self._capacity = capacity
        self._paths_per_target = paths_per_target
        self._ring: deque[CachedRedirect] = deque()
        self._paths_by_target: dict[int, tuple[bytes, ...]] = {}
        self._stale: dict[bytes, CachedRedirect] = {}
        self._invalidations = RecentInvalidations(monotonic)

    def __len__(self) -> int:
        return len(self.paths) + len(self._stale)

    def fill(self, path: bytes, entry: CachedRedirect, began: float, *keys: Hashable) -> bool:
        """Cache an entry unless its target, path or one of `keys` was invalidated since `began`."""
        if self._invalidations.has_any_since(began, entry.target, path, *keys):
            self.refused += 1
            return False
        self._drop(path)
        known = self._paths_by_target.get(entry.target, ())
        if len(known) >= self._paths_per_target:
            self._drop(known[0])
            known = self._paths_by_target.get(entry.target, ())
        while len(self) >= self._capacity:
            self._evict()
            known = self._paths_by_target.get(entry.target, ())
        entry.path, entry.seen = path, False
        self.paths[path] = entry
        self._paths_by_target[entry.target] = (*known, path)
        self._ring.append(entry)
        if len(self._ring) > 2 * self._capacity:
            self._ring = deque(kept for kept in self._ring if self.paths.get(kept.path) is kept)
        return True

    def get_stale(self, path: bytes) -> CachedRedirect | None:
        """Return a stale entry, for when the database can't be read. Expiries still apply."""
        return self._stale.get(path)

    def invalidate(self, target: int) -> None:
        """Drop all paths of a changed link, and ignore results that are being read."""
        self._invalidations.record(target)
        for path in self._paths_by_target.pop(target, ()):
            self.paths.pop(path, None)
            self._stale.pop(path, None)

    def invalidate_path(self, path: bytes) -> None:
        self._invalidations.record(path)
        self._drop(path)

    def invalidate_key(self, key: Hashable) -> None:
        """Refuse entries that are being read by a key, such as a name, that has changed."""
        self._invalidations.record(key)

    def invalidate_all(self) -> None:
        self._invalidations.record_all()
        self.paths.clear()
        self._stale.clear()
        self._paths_by_target.clear()
        self._ring.clear()

    def mark_stale(self) -> None:
        """Make all entries stale, because a change may have been missed."""
        self._invalidations.record_all()
        self._stale.update(self.paths)
        self.paths.clear()
        self._ring.clear()

    def _drop(self, path: bytes) -> None:
        entry = self.paths.pop(path, None) or self._stale.pop(path, None)
        if entry is not None:
            rest = tuple(
                known for known in self._paths_by_target.get(entry.target, ()) if known != path
            )
            if rest:
                self._paths_by_target[entry.target] = rest
            else:
                self._paths_by_target.pop(entry.target, None)

    def _evict(self) -> None:
        if self._stale:
            self._drop(next(reversed(self._stale)))
            return
        while True:
            entry = self._ring.popleft()
            if self.paths.get(entry.path) is not entry:
                continue  # dropped or replaced since
            if entry.seen:
                entry.seen = False
                self._ring.append(entry)
                continue
            self._drop(entry.path)
            self.evicted += 1
            return


class NegativeCache:
    """Names known to be missing, kept apart so that a flood of them evicts no link."""

    def __init__(
        self,
        capacity: int,
        *,
        seconds: float = MAX_NEGATIVE_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.now = monotonic
        self._capacity = capacity
        self._seconds = min(seconds, MAX_NEGATIVE_SECONDS)
        self._expires_at: dict[bytes, float] = {}
        self._order: deque[tuple[float, bytes]] = deque()
        self._invalidations = RecentInvalidations(monotonic)

    def __len__(self) -> int:
        return len(self._expires_at)

    def __contains__(self, key: bytes) -> bool:
        until = self._expires_at.get(key)
        return until is not None and self.now() < until

    def add(self, key: bytes, began: float) -> bool:
        """Add a missing name; `began` as for `RedirectCache.fill`. Its lifetime starts there."""
        until = began + self._seconds
        if self._invalidations.has_any_since(began, key):
            return False
        self._expires_at[key] = until
        self._order.append((until, key))
        while len(self._order) > self._capacity:
            self._pop_oldest()
        return True

    def invalidate(self, key: bytes) -> None:
        """Forget that a name is missing, since it exists now."""
        self._invalidations.record(key)
        self._expires_at.pop(key, None)

    def invalidate_all(self) -> None:
        self._invalidations.record_all()
        self._expires_at.clear()
        self._order.clear()

    def _pop_oldest(self) -> None:
        until, key = self._order.popleft()
        if self._expires_at.get(key) == until:
            del self._expires_at[key]
