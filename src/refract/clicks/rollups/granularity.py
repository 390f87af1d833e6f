"""Periods of roll-ups, as whole seconds since 1970. Each begins on a UTC boundary."""

from datetime import UTC, datetime
from typing import Final

QUARTER: Final = 1
HOUR: Final = 2
SIX_HOURS: Final = 3
DAY: Final = 4
MONTH: Final = 5
COARSE_GRAINS: Final = (HOUR, SIX_HOURS, DAY, MONTH)
"""The grains that a closed hour is added to besides its quarter hours."""

GRAIN_SECONDS: Final = {QUARTER: 900, HOUR: 3600, SIX_HOURS: 21_600, DAY: 86_400}


def start_of(grain: int, at: int) -> int:
    """Return the beginning of the period that contains `at`."""
    if grain == MONTH:
        moment = datetime.fromtimestamp(at, UTC)
        return int(datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp())
    return at - at % GRAIN_SECONDS[grain]


def end_of(grain: int, start: int) -> int:
    """Return the first second after the period that begins at `start`."""
    if grain == MONTH:
        return start_of(MONTH, start + 32 * GRAIN_SECONDS[DAY])
    return start + GRAIN_SECONDS[grain]


def to_seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def to_datetime(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)
