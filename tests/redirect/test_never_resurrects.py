"""After an invalidation nothing stale is cached, in any order of reads, changes and messages."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from refract.core.clock import ManualClock
from refract.core.ids import encode_base62
from refract.core.runtime import Runtime
from refract.links.changes import TargetChange
from refract.redirect.cache import CachedRedirect, NegativeCache, RedirectCache
from refract.redirect.invalidation import CacheInvalidator
from refract.redirect.lookup import TieredLookup, build_negative_keys

NAMES = st.sampled_from(["ab", "cd", "ef"])
LINKS = st.sampled_from([1, 2, 3])
SECONDS = st.sampled_from([0.0, 0.001, 4.0, 11.0, 61.0])
NOTHING: Any = SimpleNamespace()


@dataclass
class Reading:
    """A pending read: when it began, and what it read."""

    name: str
    began: float
    looked: bool = False
    saw: tuple[int, int] | None = None
    keys: tuple[str, ...] = field(default=())


class Story(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(datetime(2026, 6, 1, tzinfo=UTC))
        rt = Runtime(settings=NOTHING, db=NOTHING, clock=self.clock, ids=NOTHING, secret=NOTHING)
        self.table = RedirectCache(4, paths_per_target=2, monotonic=self.clock.monotonic)
        self.negatives = NegativeCache(4, monotonic=self.clock.monotonic)
        self.bus = CacheInvalidator(
            *(rt, NOTHING, self.table, self.negatives),
            *(TieredLookup(NOTHING, self.negatives), NOTHING),
        )
        self.versions = {1: 1, 2: 1, 3: 1}
        self.names: dict[str, int] = {}
        self.readings: list[Reading] = []
        self.news: list[TargetChange] = []

    def truth(self, name: str) -> tuple[int, int] | None:
        target = self.names.get(name)
        return None if target is None else (target, self.versions[target])

    @rule(name=NAMES)
    def set_out(self, name: str) -> None:
        self.readings.append(Reading(name, self.clock.monotonic()))

    @precondition(lambda self: any(not one.looked for one in self.readings))
    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        reading = data.draw(st.sampled_from([one for one in self.readings if not one.looked]))
        reading.looked, reading.saw = True, self.truth(reading.name)

    @precondition(lambda self: any(one.looked for one in self.readings))
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        reading = data.draw(st.sampled_from([one for one in self.readings if one.looked]))
        self.readings.remove(reading)
        if reading.saw is None:
            for fact in build_negative_keys(reading.name):
                self.negatives.add(fact, reading.began)
        else:
            self.table.fill(
                reading.name.encode(),
                CachedRedirect(*reading.saw, b""),
                reading.began,
                reading.name,
            )

    @rule(link=LINKS)
    def edit(self, link: int) -> None:
        self.versions[link] += 1
        self.news.append(
            TargetChange(
                link,
                self.versions[link],
                tuple(name for name, target in self.names.items() if target == link),
            )
        )

    @rule(name=NAMES, link=LINKS)
    def name(self, name: str, link: int) -> None:
        if name not in self.names:
            self.names[name] = link
            self.news.append(TargetChange(link, self.versions[link], (name.upper(),)))

    @rule(name=NAMES)
    def release(self, name: str) -> None:
        link = self.names.pop(name, None)
        if link is not None:
            self.news.append(TargetChange(link, self.versions[link], (name,)))

    @rule()
    def block(self) -> None:
        self.news.append(TargetChange(0, 0, ()))

    @precondition(lambda self: bool(self.news))
    @rule(data=st.data())
    def hear(self, data: st.DataObject) -> None:
        change = data.draw(st.sampled_from(self.news))
        self.news.remove(change)
        self.bus.apply_changes([change])

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def lose_touch(self) -> None:
        self.bus._invalidate_all()
        self.news.clear()  # what was missed is not heard of any more

    @invariant()
    def nothing_old_is_kept_beyond_the_news(self) -> None:
        unheard_links = {change.target_id for change in self.news}
        unheard_names = {name.lower() for change in self.news for name in change.names}
        for path, entry in self.table.paths.items():
            name = path.decode()
            if entry.target not in unheard_links and name not in unheard_names:
                assert (entry.target, entry.version) == self.truth(name)
        for name in ("ab", "cd", "ef"):
            if name not in unheard_names and all(
                fact in self.negatives for fact in build_negative_keys(name)
            ):
                assert name not in self.names

    @invariant()
    def everything_is_bounded(self) -> None:
        assert len(self.table) <= 4
        assert len(self.negatives) <= 4


TestStory = Story.TestCase
TestStory.settings = settings(max_examples=300, stateful_step_count=60, deadline=None)


def test_codes_of_small_links_are_no_names_of_the_story() -> None:
    assert not {encode_base62(link) for link in (1, 2, 3)} & {"ab", "cd", "ef"}
