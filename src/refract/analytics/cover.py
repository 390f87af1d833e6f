"""Which roll-ups hold a range of time: the fewest rows that are exactly it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from refract.analytics.grains import DAY, HOUR, MONTH, QUARTER, SECONDS, SIX_HOURS, end_of, start_of

_LARGEST_FIRST: Final = (DAY, SIX_HOURS, HOUR)  # months keep a thousand values of a whole month: only where there is nothing better


@dataclass(frozen=True, slots=True)
class State:
    """How far the roll-ups are; see `RollupState`. All moments in seconds."""

    turn: int = 0
    closed_until: int = 0
    closed_target: int = -1
    quarters_from: int = 0
    days_from: int = 0
    months_from: int = 0
    outlived: int = 0
    settled_until: int = 0
    settled_target: int = -1

    def closed_for(self, target: int) -> int:
        """Hours before this are in coarser roll-ups of this target too."""
        return self.closed_until + (SECONDS[HOUR] if target <= self.closed_target else 0)

    def kept_from(self, grain: int) -> int:
        """Roll-ups of this grain that begin earlier are gone, or about to go."""
        return self.months_from if grain == MONTH else self.days_from if grain == DAY else self.quarters_from


class Stretch(NamedTuple):
    """All rows of one grain that begin in [begin, end)."""

    grain: int
    begin: int
    end: int


def cover(state: State, begin: int, end: int, *, closed: int) -> list[Stretch]:
    """The rows that hold [begin, end), which lie on quarter hours, in order of time.

    Before `quarters_from` the answer is rounded outwards to whole UTC days, before `days_from` to whole months; before
    `months_from` there is nothing. `closed` comes from `State.closed_for`.
    """
    found: list[Stretch] = []
    for grain, at, until in _steps(state, max(begin, state.months_from), end, closed):
        if found and found[-1].grain == grain and found[-1].end == at:
            found[-1] = Stretch(grain, found[-1].begin, until)
        else:
            found.append(Stretch(grain, at, until))
    return found


def _steps(state: State, begin: int, end: int, closed: int) -> Iterator[Stretch]:
    at = begin
    while at < end:
        if at >= max(closed, state.quarters_from):
            yield Stretch(QUARTER, at, end)  # there is nothing coarser from here on
            return
        grain = _grain_at(state, at, end, closed)
        at = start_of(grain, at)
        yield Stretch(grain, at, end_of(grain, at))
        # A coarse row that is still growing holds what lies before `closed`, and nothing behind it.
        at = end_of(grain, at) if grain == QUARTER else min(end_of(grain, at), closed)


def _grain_at(state: State, at: int, end: int, closed: int) -> int:
    if at < state.days_from:
        return MONTH
    if at < state.quarters_from:
        return DAY
    if at < closed:
        for grain in _LARGEST_FIRST:
            if start_of(grain, at) == at and min(end_of(grain, at), closed) <= end:
                return grain
    return QUARTER
