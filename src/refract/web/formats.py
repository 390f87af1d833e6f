"""Percentages, sizes, dates and lists in the current language, by CLDR. Numbers are in `i18n`.

Babel is loaded by the first call: some roles never render a page, and the others load it in a
thread (`load_language`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from functools import lru_cache

from refract.core.runtime import Runtime
from refract.core.text import fold_text
from refract.core.threads import WorkThreadPool
from refract.web.i18n import Locale, current_locale, format_number, load_cldr, use_locale

_OTHER_TERRITORIES = frozenset({"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"})
"""Codes of CLDR that are no countries."""

_zone: ContextVar[tzinfo] = ContextVar("zone", default=UTC)


def current_zone() -> tzinfo:
    """Return the time zone in which pages write times."""
    return _zone.get()


@contextmanager
def use_zone(zone: tzinfo) -> Iterator[None]:
    """Write times in a zone inside the block."""
    token = _zone.set(zone)
    try:
        yield
    finally:
        _zone.reset(token)


async def prepare_language(locale: Locale, rt: Runtime) -> None:
    """Load a language before its first page, in a thread. Most sites need one, not all of them."""
    if not locale.is_loaded:
        await rt.singleton(WorkThreadPool).run(load_language, locale)


def load_language(locale: Locale) -> None:
    """Read the catalogue and the formats of a language. Slow: call it in a thread."""
    with use_locale(locale):
        _ = locale.translations, format_number(0), format_percent(0), format_list([])


def format_bytes(number: int) -> str:
    """Format a size: 0 B, 12.3 MB, 5 GB."""
    size, units = float(number), ["B", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{format_number(round(size, 1))} {units[0]}"


def format_percent(share: float | Decimal, *, exact: bool = False) -> str:
    """Format a share: 0.45 → 45% (English), 45 % (German). An exact one keeps its decimals."""
    from babel.numbers import format_percent as by_cldr  # noqa: PLC0415 - see above

    cldr = load_cldr(current_locale().folder)
    return by_cldr(share, locale=cldr, decimal_quantization=not exact)


def format_date(at: date | datetime, zone: tzinfo | None = None) -> str:
    """Format a date: Aug 20, 2026 · 20.08.2026 · 2026年8月20日. Default zone: the page's."""
    day = at.astimezone(zone or current_zone()).date() if isinstance(at, datetime) else at
    return _format_day(day, current_locale().folder)


@lru_cache(maxsize=1_024)
def _format_day(day: date, folder: str) -> str:
    from babel.dates import format_date as by_cldr  # noqa: PLC0415 - see above

    return by_cldr(day, "medium", locale=load_cldr(folder))


def format_month(at: date) -> str:
    """Aug 2026 · Aug. 2026 · 2026年8月."""
    from babel.dates import format_skeleton as by_cldr  # noqa: PLC0415 - see above

    locale = load_cldr(current_locale().folder)
    return by_cldr("yMMM", datetime(at.year, at.month, at.day, tzinfo=UTC), locale=locale)


def get_territory_name(code: str) -> str | None:
    """Return the name of a country by its ISO code, or None if it is unknown."""
    name: str | None = load_cldr(current_locale().folder).territories.get(code)
    return name


def list_territories() -> list[tuple[str, str]]:
    """Return codes and names of all countries, in the order of their names."""
    names = load_cldr(current_locale().folder).territories
    countries = [
        (code, str(name))
        for code, name in names.items()
        if len(code) == 2 and code.isalpha() and code not in _OTHER_TERRITORIES
    ]
    return sorted(countries, key=lambda country: fold_text(country[1]))


def format_time(at: time) -> str:
    """Format a time of day: 3:00 PM · 15:00."""
    return _format_minute(at.replace(second=0, microsecond=0), current_locale().folder)


@lru_cache(maxsize=2_048)
def _format_minute(at: time, folder: str) -> str:
    from babel.dates import format_time as by_cldr  # noqa: PLC0415 - see above

    return by_cldr(at, "short", locale=load_cldr(folder))


def format_datetime(at: datetime, zone: tzinfo | None = None) -> str:
    """Format a date with the time, to the minute. UTC is named. Default zone: the page's."""
    zone = zone or current_zone()
    local = at.astimezone(zone)
    pattern = load_cldr(current_locale().folder).datetime_formats["medium"]
    together = str(pattern).format(format_time(local.time()), format_date(local, zone))
    return f"{together} UTC" if zone is UTC else together


def format_relative(at: datetime, now: datetime) -> str:
    """Format a time relative to another: 2 min. ago · in 3 days."""
    from babel.dates import format_timedelta as by_cldr  # noqa: PLC0415 - see above

    return by_cldr(
        at - now, add_direction=True, format="short", locale=load_cldr(current_locale().folder)
    )


def format_list(items: Sequence[str]) -> str:
    """Join an enumeration: a, b, and c."""
    from babel.lists import format_list as by_cldr  # noqa: PLC0415 - see above

    return by_cldr(items, locale=load_cldr(current_locale().folder))
