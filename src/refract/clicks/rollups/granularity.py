"""Stretches of time that roll-ups are kept for, as whole seconds since 1970: every one begins on a boundary of UTC."""

from datetime import UTC, datetime
from typing import Final

QUARTER: Final = 1
HOUR: Final = 2
SIX_HOURS: Final = 3
DAY: Final = 4
MONTH: Final = 5
COARSE_GRAINS: Final = (HOUR, SIX_HOURS, DAY, MONTH)
"""What a closed hour is kept in besides its quarters."""

GRAIN_SECONDS: Final = {QUARTER: 900, HOUR: 3600, SIX_HOURS: 21_600, DAY: 86_400}


def start_of(grain: int, at: int) -> int:
    """The beginning of the stretch that `at` lies in."""
    if grain == MONTH:
        moment = datetime.fromtimestamp(at, UTC)
        return int(datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp())
    return at - at % GRAIN_SECONDS[grain]


def end_of(grain: int, start: int) -> int:
    """The first second after the stretch that begins at `start`."""
    if grain == MONTH:
        return start_of(MONTH, start + 32 * GRAIN_SECONDS[DAY])
    return start + GRAIN_SECONDS[grain]


def to_seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def to_datetime(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
