"""L1: from the raw path of a request to an answer that only lacks the date. Bounded, and quick to forget."""

import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

from refract.clicks.spool.format import LINK_CLICK

NEVER: Final = (1 << 63) - 1
INVALIDATION_MEMORY_SECONDS: Final = 10.0
MAX_NEGATIVE_SECONDS: Final = 60.0
_METHOD_PRESERVING_STATUSES: Final = frozenset({b"307", b"308"})


class CachedRedirect:
    """An answer ready to leave. `target` is the link's id, or the list entry's, as `kind` says."""

    __slots__ = (
        "any_method",
        "expires_ns",
        "forwards_query",
        "guessable",
        "head",
        "kind",
        "path",
        "seen",
        "target",
        "version",
    )

    def __init__(
        self,
        target: int,
        version: int,
        head: bytes,
        expires_ns: int = NEVER,
        forwards_query: bool = False,
        kind: int = LINK_CLICK,
        guessable: bool = False,
    ) -> None:
        self.target = target
        self.version = version
        self.head = head
        self.any_method = head[9:12] in _METHOD_PRESERVING_STATUSES
        self.expires_ns = expires_ns
        self.forwards_query = forwards_query
        self.kind = kind
        self.guessable = guessable
        self.path = b""
        self.seen = False


class RecentInvalidations:
    """What was forgotten in the last seconds, so that an answer read before cannot come back after."""

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
            if self._recorded_at.get(old) == at:  # noted again since, or twice at that moment
                del self._recorded_at[old]

    def record_all(self) -> None:
        self._all_recorded_at = self._monotonic()
        self._recorded_at.clear()
        self._order.clear()

    def has_any_since(self, began: float, *tokens: Hashable) -> bool:
        """Whether any of these was forgotten after `began`, or may have been: too long ago to remember counts as yes."""
        if (
            began <= self._all_recorded_at
            or began <= self._monotonic() - INVALIDATION_MEMORY_SECONDS
        ):
            return True
        return any(self._recorded_at.get(token, float("-inf")) >= began for token in tokens)

    def __len__(self) -> int:
        return len(self._recorded_at)


class RedirectCache:
    """At most `capacity` paths. A hit sets a flag and does nothing else; eviction gives flagged entries a second round.

    Whoever fills takes `now()` before reading the store and hands it to `fill`. Times are monotonic seconds.
    """

    def __init__(
        self,
        capacity: int,
        *,
        paths_per_target: int = 16,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.paths: dict[
            bytes, CachedRedirect
        ] = {}  # the lane keeps a reference: this object never changes
        self.trusted_until_ns = NEVER
        """From this moment on, by the clock of expiries, no hit counts: whoever brings the news has not been heard of for too long."""
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
        """Take an answer in, unless its target, its path or one of `keys` was forgotten since `began`."""
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
            self._ring = deque(each for each in self._ring if self.paths.get(each.path) is each)
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
        """Something a path resolves by has changed, such as a name: answers being read by it will not be taken in."""
        self._invalidations.record(key)

    def invalidate_all(self) -> None:
        self._invalidations.record_all()
        self.paths.clear()
        self._stale.clear()
        self._paths_by_target.clear()
        self._ring.clear()

    def mark_stale(self) -> None:
        """We may have missed a change: nothing is a hit until it has been asked for again."""
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
                continue  # forgotten or replaced since
            if entry.seen:
                entry.seen = False
                self._ring.append(entry)
                continue
            self._drop(entry.path)
            self.evicted += 1
            return


class NegativeCache:
    """Keys known to lead nowhere, apart from the links, so that a flood of unknown names evicts none of them."""

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
        """`began` as for `Table.fill`; the time counts from there, since that is when it was true."""
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
